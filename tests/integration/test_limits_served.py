"""Limits as people meet them: settings of the server, and the reason of a job that met one."""

import sys

import pytest

from runyard.supervisor import cgroup

GROW = [sys.executable, "-c", "kept = []\nwhile True: kept.append(bytearray(2 << 20))"]
HOLD = [sys.executable, "-c", "kept = bytearray(100 << 20); import time; time.sleep(600)"]


@pytest.mark.skipif("memory" not in cgroup.find(), reason="no memory group can be made here")
def test_a_job_above_its_memory_is_told_so(make_yard):
    """R18, R33: the kernel ended it at what its owner asked for."""
    yard = make_yard(env={"RUNYARD_ENFORCE_MEMORY": "cgroup"}).start()
    ref = yard.submit(GROW, memory_gb=0.0625)
    job = yard.wait(ref, "failed")
    assert job["reason"]["code"] == "oom"
    assert job["reason"]["params"]["limit_mb"] == 64
    assert [attempt["cause"] for attempt in yard.attempts(ref)] == ["oom"]


def test_without_groups_it_is_ended_by_its_supervisor(make_yard):
    """R18: with its grace, so that it can save what it has."""
    settings = {"RUNYARD_ENFORCE_MEMORY": "always", "RUNYARD_CGROUPS": "off"}
    yard = make_yard(env=settings).start()
    ref = yard.submit(HOLD, memory_gb=0.0625, grace_s=30)
    job = yard.wait(ref, "failed")
    assert job["reason"]["code"] == "oom_soft"
    assert job["reason"]["params"].items() >= {"limit_mb": 64, "signal": 15}.items()
    assert job["reason"]["params"]["used_mb"] >= 64  # it may be met while it still grows


def test_memory_is_a_request_by_default(make_yard):
    yard = make_yard(env={"RUNYARD_JOB_NICE": "3"}).start()
    show = "kept = bytearray(100 << 20); import os, sys; sys.exit(os.nice(0))"
    ref = yard.submit([sys.executable, "-c", show], memory_gb=0.01)
    job = yard.wait(ref, "failed")
    assert job["reason"] == {"code": "exit_code", "params": {"code": 3}}


def test_a_crash_and_a_strangers_signal_are_told_apart(make_yard):
    """R18"""
    yard = make_yard().start()
    crashed = yard.submit("kill -SEGV $$")
    killed = yard.submit("kill -TERM $$")
    assert yard.wait(crashed, "failed")["reason"]["code"] == "crashed"
    reason = yard.wait(killed, "failed")["reason"]
    assert (reason["code"], reason["params"]["name"]) == ("killed_externally", "SIGTERM")
