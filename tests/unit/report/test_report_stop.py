"""should_stop: the stop file, SIGTERM, handlers that are there already, threads and forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import runyard.report as report\n" + program],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_outside_a_job_nobody_asks():
    assert run("print(report.should_stop())") == "False"


def test_the_stop_file(tmp_path):
    """R1: training code can cooperate with a cancel."""
    program = """
import os, time
assert not report.should_stop()
open(os.environ["RUNYARD_STOP_FILE"], "w").close()
until = time.monotonic() + 30
while not report.should_stop() and time.monotonic() < until: time.sleep(0.01)
os.unlink(os.environ["RUNYARD_STOP_FILE"])
print(report.should_stop())
"""
    assert run(program, RUNYARD_STOP_FILE=str(tmp_path / "stop")) == "True"


def test_sigterm_is_remembered_and_the_training_goes_on():
    program = """
import os, signal
assert not report.should_stop()
os.kill(os.getpid(), signal.SIGTERM)
print(report.should_stop(), "still here")
"""
    assert run(program) == "True still here"


@pytest.mark.parametrize("handler", ["lambda *_: print('mine')", "signal.SIG_IGN"])
def test_a_handler_that_is_there_is_kept(handler):
    program = f"""
import os, signal
mine = {handler}
signal.signal(signal.SIGTERM, mine)
assert not report.should_stop()
os.kill(os.getpid(), signal.SIGTERM)
assert signal.getsignal(signal.SIGTERM) is mine
print(report.should_stop())
"""
    assert run(program).splitlines()[-1] == "False"


def test_a_thread_leaves_signals_alone_and_the_main_thread_takes_them_later():
    program = """
import signal, threading
thread = threading.Thread(target=report.should_stop)
thread.start(); thread.join()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
report.should_stop()
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""
    assert run(program) == "False"


def test_importing_touches_no_handler():
    program = "import signal; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    assert run(program) == "True"


def test_a_forked_worker_ends_at_sigterm():
    """multiprocessing ends its workers with it, and waits for them for ever."""
    program = """
import multiprocessing, time
context = multiprocessing.get_context("fork")
report.should_stop()
codes = set()
for _ in range(20):  # also at once after the fork
    worker = context.Process(target=time.sleep, args=(60,))
    worker.start()
    worker.terminate()
    worker.join(30)
    codes.add(worker.exitcode)
print(*codes)
"""
    assert run(program) == str(-signal.SIGTERM)


def test_asking_in_every_step_is_cheap(tmp_path):
    program = """
import time
began = time.process_time()
for _ in range(100_000): report.should_stop()
print(time.process_time() - began)
"""
    assert float(run(program, RUNYARD_STOP_FILE=str(tmp_path / "stop"))) < 5


def test_a_training_that_saves_at_sigterm(tmp_path):
    """The whole story of a cancel with grace, as a program sees it."""
    program = """
import os, time
step = 0
while not report.should_stop():
    step += 1
    report(step=step)
    print("step", flush=True)
    time.sleep(0.01)
report.save_checkpoint(lambda path: open(path, "w").write("weights"), "last.pt", step)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", "import runyard.report as report\n" + program],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        env={**os.environ, "RUNYARD_METRICS_FILE": str(tmp_path / "m.jsonl")},
    )
    with process:
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(30) == 0
    assert (tmp_path / "last.pt").read_text() == "weights"
    assert '"kind":"checkpoint"' in (tmp_path / "m.jsonl").read_text().splitlines()[-1]
