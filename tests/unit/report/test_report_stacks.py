"""A process that reports offers to write where its threads are; never against its own wishes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from runyard.report import stack_offer
from runyard.supervisor import protocol
from yards import until

HEAD = "import os, sys, time, signal\nfrom runyard import report\n"


@pytest.fixture
def start(tmp_path):
    begun = []

    def make(program: str, **environment: str) -> subprocess.Popen:
        given = {"RUNYARD_RUN_DIR": str(tmp_path), "RUNYARD_METRICS_FILE": str(tmp_path / "m")}
        env = {**os.environ, **given, **environment}
        process = subprocess.Popen(
            [sys.executable, "-c", HEAD + program], env=env, stdout=subprocess.PIPE
        )
        begun.append(process)
        return process

    yield make
    for process in begun:
        process.kill()
        process.wait(10)
        process.stdout.close()


def offered(tmp_path, process) -> str:
    path = tmp_path / stack_offer.file_name(process.pid)
    until(path.exists)
    return path


def test_the_signal_makes_it_write_where_each_thread_is(start, tmp_path):
    """R15: also while its main thread waits in C code."""
    program = """
import threading
def waits_for_ever(): threading.Event().wait()
threading.Thread(target=waits_for_ever, daemon=True).start()
report(step=1)
print("ready", flush=True)
def stuck_here(): os.read(os.pipe()[0], 1)
stuck_here()
"""
    process = start(program)
    assert process.stdout.readline() == b"ready\n"
    path = offered(tmp_path, process)

    def told() -> bool:
        os.kill(process.pid, stack_offer.SIGNAL)
        text = path.read_text()
        return "stuck_here" in text and "waits_for_ever" in text

    until(told)
    assert process.poll() is None


def test_a_handler_of_the_program_is_left_alone(start, tmp_path):
    program = """
signal.signal(43, lambda *_: print("mine", flush=True))
report(step=1)
print("ready", flush=True)
while True: time.sleep(0.05)
"""
    process = start(program)
    assert process.stdout.readline() == b"ready\n"
    assert not (tmp_path / stack_offer.file_name(process.pid)).exists()
    os.kill(process.pid, stack_offer.SIGNAL)
    assert process.stdout.readline() == b"mine\n"


def test_signals_that_programs_use_are_not_touched(start):
    program = """
report(step=1)
known = [signal.getsignal(n) is signal.SIG_DFL for n in (signal.SIGUSR1, signal.SIGUSR2)]
print(known, flush=True)
"""
    assert start(program).stdout.readline() == b"[True, True]\n"


def test_a_fork_makes_its_own_offer(start, tmp_path):
    program = """
report(step=1)
child = os.fork()
if child == 0:
    report(step=2)
    print(os.getpid(), flush=True)
time.sleep(600)
"""
    process = start(program)
    child = int(process.stdout.readline())
    try:
        path = tmp_path / stack_offer.file_name(child)
        os.kill(child, stack_offer.SIGNAL)
        until(lambda: path.stat().st_size > 0)
        assert offered(tmp_path, process).stat().st_size == 0
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("folder", ["", "/nowhere/at/all"])
def test_without_a_folder_nothing_happens(start, folder):
    program = "report(step=1)\nprint('ready', flush=True)\n"
    assert start(program, RUNYARD_RUN_DIR=folder).stdout.readline() == b"ready\n"


def test_what_is_offered_is_what_is_asked_for():
    """The two sides import nothing of each other."""
    assert stack_offer.SIGNAL == protocol.STACKS_SIGNAL
    assert stack_offer.file_name(7) == protocol.stacks_file(7)
    assert stack_offer.FOLDER_VARIABLE == protocol.RUN_DIR
