"""Strict isolation: the job in namespaces of its own, which the kernel ends as one."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from keeper_yard import Yard, wait_for

from runyard.supervisor import keeper_client, liveness, namespace, process_table, reconcile

LOOK = """
import json, os, sys
print(json.dumps({
    "pid": os.getpid(), "uid": os.getuid(), "sid": os.getsid(0), "group": os.getpgrp(),
    "seen": sorted(int(n) for n in os.listdir("/proc") if n.isdigit()),
    "init": open("/proc/1/comm").read().strip(),
    "shm": os.stat("/dev/shm").st_dev, "pidns": os.readlink("/proc/self/ns/pid"),
}))
"""


@pytest.fixture(autouse=True)
def possible():
    found = namespace.obstacle()
    if found:
        pytest.skip(f"no strict isolation here: {found}")


def strict_python(yard, code, **fields):
    return yard.start_python(code, isolation="strict", **fields)


def test_strict_namespace_job(yard):
    """R41: it sees itself only, and its shared memory is its own."""
    attempt_id = strict_python(yard, LOOK)
    end = yard.wait_end(attempt_id)
    seen = json.loads(yard.log(attempt_id))
    assert (end["code"], end["cause"], end["proof"]) == (0, "exited", "echild")
    assert seen["pid"] == seen["sid"] == seen["group"] == 2
    assert seen["seen"] == [1, 2]
    assert seen["uid"] == os.getuid()
    assert seen["shm"] != os.stat("/dev/shm").st_dev
    assert seen["pidns"] != os.readlink("/proc/self/ns/pid")


@pytest.mark.parametrize("code", [0, 1, 42, 137, 255])
def test_strict_exit_codes_kept(yard, code):
    end = yard.wait_end(strict_python(yard, f"import os; os._exit({code})"))
    assert (end["code"], end["signal"], end["cause"]) == (code, None, "exited")


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL", "TERM", "USR1", "HUP", "RTMIN"])
def test_strict_exit_codes_and_signals_kept(yard, name):
    number = int(getattr(signal, f"SIG{name}"))
    code = f"import os; os.kill(os.getpid(), {number})"
    end = yard.wait_end(strict_python(yard, code))
    assert (end["code"], end["signal"], end["cause"]) == (None, number, "exited")
