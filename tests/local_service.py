"""A service and a job that tell what happened to them: lines of `name what time` in one file.

`python local_service.py service FILE FIFO PORT [stubborn]` listens on PORT and leaves a process
in a session of its own (which ignores SIGTERM). `python local_service.py job FILE FIFO` says
"begun URL" and runs until it is told to end. Every process of both holds FIFO open.
"""

import http.server
import os
import signal
import sys
import time


def main(kind, path, fifo, *rest):
    own = os.getpid()
    os.open(fifo, os.O_WRONLY)
    os.set_inheritable(os.open(fifo, os.O_WRONLY), True)

    def told(what):
        with open(path, "a") as file:
            file.write(f"{kind} {what} {time.time()}\n")

    def ended(*_):
        if os.getpid() == own:  # and not a fork that has not unset this yet
            told("end")
        os._exit(0)

    signal.signal(signal.SIGTERM, ended)
    told("begin")
    if kind == "job":
        print("begun", os.environ.get("RUNYARD_SERVICE_REWARD_URL"), flush=True)
        while True:
            signal.pause()
    port, *manner = rest
    if os.fork() == 0:  # escapes every group and session
        os.setsid()
        stubborn = "stubborn" in manner
        signal.signal(signal.SIGTERM, signal.SIG_IGN if stubborn else signal.SIG_DFL)
        if os.fork() == 0:
            while True:
                signal.pause()
        os._exit(0)
    os.wait()  # from here on that process is there, and as deaf as it shall be
    handler = http.server.SimpleHTTPRequestHandler
    http.server.HTTPServer(("127.0.0.1", int(port)), handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
