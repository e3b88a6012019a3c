"""Programs for tests of services. Run as `service_programs.py KIND [ARGUMENT...]`.

Each writes what it does, with the time, as a line to the file named by STORY, and holds the write
end of the FIFO named by ALIVE open, so that end-of-file there means that all of them are dead.
"""

import os
import signal
import socket
import sys
import threading
import time


def tell(what):
    with open(os.environ["STORY"], "ab", buffering=0) as file:
        file.write(f"{time.monotonic():.6f} {what}\n".encode())


def hold_alive():
    fd = os.open(os.environ["ALIVE"], os.O_WRONLY)
    os.set_inheritable(fd, True)


def end_with_words(name, code=0, pause_s=0.0):
    def handler(*_):
        tell(f"{name} asked to end")
        time.sleep(pause_s)
        tell(f"{name} ends")
        os._exit(code)

    signal.signal(signal.SIGTERM, handler)


def answer(connection, words):
    with connection:
        if words:
            connection.recv(4096)
            connection.sendall(words.encode())


def listen(words, ready=None):
    """Accept for ever; answer with the words, which `ready` may change."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(os.environ["RUNYARD_PORT"])))
    tell("listening")  # before it does: main starts as soon as it is seen to
    server.listen(16)
    while True:
        connection, _ = server.accept()
        said = ready() if ready else words
        threading.Thread(target=answer, args=(connection, said), daemon=True).start()


def serve(name="service", code="0"):
    """A TCP service that ends when asked to."""
    end_with_words(name, int(code))
    print(f"{name} serves", flush=True)
    listen("")


def slow_to_end(name="service"):
    end_with_words(name, pause_s=0.2)
    listen("")


def http(path):
    """503 until the file is there, then 200."""
    end_with_words("http")

    def ready():
        warm = os.path.exists(path)
        tell("answers 200" if warm else "answers 503")
        return f"HTTP/1.1 {'200 OK' if warm else '503 Loading'}\r\nContent-Length: 0\r\n\r\n"

    listen("", ready)


def mute():
    """Never listens."""
    end_with_words("mute")
    print("loading the model for ever", flush=True)
    time.sleep(600)


def crash(code):
    print("cannot load the model", file=sys.stderr, flush=True)
    sys.exit(int(code))


def crash_when_told(path):
    """Serve, and exit with the code that appears in the file."""
    end_with_words("crasher")
    threading.Thread(target=listen, args=("",), daemon=True).start()
    while not (code := words_in(path)):
        time.sleep(0.01)
    os.unlink(path)
    tell(f"exits {code}")
    os._exit(int(code))


def words_in(path):
    """Nothing while the file is not there or not written yet."""
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def stop_answering(path):
    """Serve until the file is there; close the port then, and listen again when it is gone."""
    end_with_words("moody")
    address = ("127.0.0.1", int(os.environ["RUNYARD_PORT"]))
    while True:
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(16)
        server.settimeout(0.05)
        while not os.path.exists(path):
            try:
                server.accept()[0].close()
            except TimeoutError:
                continue
        server.close()
        while os.path.exists(path):
            time.sleep(0.01)


def with_daemon():
    """A service with a daemonised child that outlives it, if it can."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    serve("parent")


def train(seconds="600", code="0"):
    """The job's main process: sees that its service answers, then works."""
    end_with_words("main", pause_s=0.3)
    port = int(os.environ["RUNYARD_PORT_REWARD"])
    tell("main starts")
    socket.create_connection(("127.0.0.1", port), 60).close()
    tell("main reached the service")
    time.sleep(float(seconds))
    tell("main ends")
    sys.exit(int(code))


def stubborn():
    """A main process that does not end when asked to."""
    signal.signal(signal.SIGTERM, lambda *_: tell("main asked to end"))
    tell("main starts")
    while True:
        time.sleep(0.05)


KINDS = {
    function.__name__: function
    for function in (
        serve,
        slow_to_end,
        http,
        mute,
        crash,
        crash_when_told,
        stop_answering,
        with_daemon,
        train,
        stubborn,
    )
}

if __name__ == "__main__":
    hold_alive()
    KINDS[sys.argv[1]](*sys.argv[2:])
