"""Run by test_isolation.py as somebody else, and where namespaces are refused.

`isolated_run.py FOLDER CASE...` prints one JSON object: for each case its end and what it told.
"""

import json
import os
import signal
import sys

from keeper_yard import Yard

LOOK = """
import json, os
print(json.dumps({
    "pid": os.getpid(), "uid": os.getuid(), "sid": os.getsid(0), "group": os.getpgrp(),
    "seen": sorted(int(n) for n in os.listdir("/proc") if n.isdigit()),
    "shm": os.stat("/dev/shm").st_dev, "pidns": os.readlink("/proc/self/ns/pid"),
}), flush=True)
"""


def look(yard):
    attempt_id = yard.start_python(LOOK, isolation="strict")
    return {"end": yard.wait_end(attempt_id), "log": yard.log(attempt_id).decode()}


def exits(yard):
    return {"end": yard.wait_end(yard.start(["/bin/sh", "-c", "exit 42"], isolation="strict"))}


def plain(yard):
    return {"end": yard.wait_end(yard.start(["/bin/sh", "-c", "exit 42"]))}


def aborts(yard):
    return {"end": yard.wait_end(yard.start(["/bin/sh", "-c", "kill -6 $$"], isolation="strict"))}


def cancelled(yard):
    attempt_id, alive, _ = yard.start_shape("double_fork_daemon", isolation="strict")
    yard.stop(attempt_id, grace_s=0.2)
    return {"end": yard.wait_end(attempt_id), "dead": alive.all_dead_now()}


def supervisor_dies(yard):
    attempt_id, alive, _ = yard.start_shape("double_fork_daemon", isolation="strict")
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    return {"end": yard.wait_end(attempt_id), "dead": alive.all_dead_now()}


CASES = {case.__name__: case for case in (look, plain, exits, aborts, cancelled, supervisor_dies)}


def main():
    folder, *names = sys.argv[1:]
    yard = Yard(folder)
    try:
        print(json.dumps({name: CASES[name](yard) for name in names}))
    finally:
        yard.close()


if __name__ == "__main__":
    main()
