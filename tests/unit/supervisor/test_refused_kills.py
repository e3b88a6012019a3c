"""What the kernel does not let a supervisor kill is named, and nothing else."""

import json
import os
import signal
import time
from types import SimpleNamespace

import pytest

from runyard.supervisor import ending

NOBODY = 65534
WILLING = 12


class Told(Exception):
    pass


def child_as(user):
    pid = os.fork()
    if pid:
        return pid
    try:
        if user:
            os.setresuid(user, user, user)
        signal.pause()
    finally:
        os._exit(1)


def report(pids):
    raise Told(pids)


def kill_all_as_nobody(tell):
    """Has a child of another user's, which cannot be killed, and many that can."""
    refusing = child_as(0)
    os.write(tell, json.dumps(refusing).encode() + b"\n")
    os.setresuid(NOBODY, NOBODY, NOBODY)
    for _ in range(WILLING):
        child_as(None)
    end = SimpleNamespace(
        shared_memory={},
        signalled=lambda *_: None,
        report_stuck=report,
        reap=lambda pid: os.waitpid(pid, 0),
    )
    attempt = SimpleNamespace(
        kill_timeout_s=60.0,
        group=None,
        end=end,
        mains={},
        gang=None,
        services=None,
        next_beat=time.monotonic() + 60,
    )
    try:
        ending._kill_until_empty(attempt)
    except Told as told:
        os.write(tell, json.dumps(told.args[0]).encode())


@pytest.mark.skipif(os.getuid() != 0, reason="becomes somebody else: needs root")
def test_only_those_that_refuse_to_die_are_named():
    """R41: others that were killed a moment ago are not called stuck."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            kill_all_as_nobody(tell)
        finally:
            os._exit(0)
    os.close(tell)
    with open(told) as lines:
        refusing = json.loads(lines.readline())
        os.waitpid(pid, 0)
        os.kill(refusing, signal.SIGKILL)
        assert json.loads(lines.read()) == [refusing]
