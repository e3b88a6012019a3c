"""Where processes are, by each way of finding out, and nothing sent to those that are not ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from runyard.supervisor import stack_dump

REPORTS = """
import os, time
from runyard import report
report(step=1)
def stuck_in_this_function():
    print("ready", flush=True)
    time.sleep(600)
stuck_in_this_function()
"""
SILENT = REPORTS.replace("report(step=1)\n", "")


@pytest.fixture
def start(tmp_path, monkeypatch):
    # A busy machine may let those that are asked wait longer than somebody who looks would.
    monkeypatch.setattr(stack_dump, "PY_SPY_S", 60.0)
    monkeypatch.setattr(stack_dump, "ANSWER_S", 60.0)
    begun = []

    def make(program: str, **environment: str) -> int:
        given = {"RUNYARD_RUN_DIR": str(tmp_path), "RUNYARD_METRICS_FILE": str(tmp_path / "m")}
        env = {**os.environ, **given, **environment}
        process = subprocess.Popen(
            [sys.executable, "-c", program], env=env, stdout=subprocess.PIPE
        )
        begun.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process.pid

    yield make
    for process in begun:
        process.kill()
        process.wait(10)
        process.stdout.close()


def dump(pids, folder, *, belongs=True):
    deadline = time.monotonic() + 100
    return stack_dump.dump_all(pids, lambda _pid: belongs, folder, deadline)


def test_py_spy_tells_if_it_is_installed(start, tmp_path):
    if stack_dump.py_spy() is None:
        pytest.skip("py-spy is not installed")
    [found] = dump([start(SILENT)], tmp_path)
    if found.by == "proc":
        pytest.skip("this machine does not allow one process to read another")
    assert found.by == "py-spy"
    assert "stuck_in_this_function" in found.text


def test_without_py_spy_the_program_tells_itself(start, tmp_path, monkeypatch):
    monkeypatch.setattr(stack_dump, "py_spy", lambda: None)
    [found] = dump([start(REPORTS)], tmp_path)
    assert found.by == "faulthandler"
    assert "stuck_in_this_function" in found.text


def test_what_offers_nothing_is_told_by_the_kernel(start, tmp_path, monkeypatch):
    monkeypatch.setattr(stack_dump, "py_spy", lambda: None)
    pid = start(SILENT)
    [found] = dump([pid], tmp_path)
    assert found.by == "proc"
    assert f"process {pid}" in found.text
    assert "thread" in found.text
    assert os.path.exists(f"/proc/{pid}"), "it lives"


def test_a_file_that_lies_makes_nobody_send_a_signal(start, tmp_path, monkeypatch):
    """A process without a handler would die of the signal, whatever a file says."""
    monkeypatch.setattr(stack_dump, "py_spy", lambda: None)
    pid = start(SILENT)
    (tmp_path / f"stacks-{pid}.txt").touch()
    [found] = dump([pid], tmp_path)
    assert found.by == "proc"
    assert os.path.exists(f"/proc/{pid}")


def test_a_process_that_is_not_proven_ours_is_sent_nothing(start, tmp_path, monkeypatch):
    monkeypatch.setattr(stack_dump, "py_spy", lambda: None)
    pid = start(REPORTS)
    [found] = dump([pid], tmp_path, belongs=False)
    assert found.by == "proc"
    assert (tmp_path / f"stacks-{pid}.txt").stat().st_size == 0


def test_ranks_come_first_and_dead_processes_do_no_harm(start, tmp_path, monkeypatch):
    monkeypatch.setattr(stack_dump, "py_spy", lambda: None)
    second, first = start(REPORTS, RANK="1"), start(REPORTS, RANK="0")
    other = start(SILENT)
    gone = subprocess.Popen(["true"])
    gone.wait(10)
    found = dump([other, second, gone.pid, first], tmp_path)
    assert [one.rank for one in found[:2]] == [0, 1]
    assert [one.pid for one in found[:2]] == [first, second]
