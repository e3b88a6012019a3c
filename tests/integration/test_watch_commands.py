"""`runyard top` and `runyard metrics` against a real server, in a pipe and in a terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRAINING = """
import time
for n in range(1, 101):
    print(f"Epoch {n}/100 - Loss: {2.5 / n:.4f}", flush=True)
    time.sleep(0.02)
time.sleep(SLEEP)
"""


def training(yard, sleep):
    """It goes on for so many seconds at its end, or until that file is there."""
    wait = f"__import__('os').path.exists({str(sleep)!r}) or time.sleep(0.05)"
    last = f"while not ({wait}): pass" if isinstance(sleep, Path) else f"time.sleep({sleep})"
    code = TRAINING.replace("time.sleep(SLEEP)", last)
    return yard.submit([sys.executable, "-c", code], name="curve")


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, yard, *words):
        self._master, slave = pty.openpty()
        env = yard.env | {"RUNYARD_URL": yard.url, "RUNYARD_API_KEY": yard.key, "TERM": "xterm"}
        env |= {"COLUMNS": "140", "LINES": "40", "LANG": "C.UTF-8"}
        argv = [sys.executable, "-m", "runyard", *words]
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        self.shown = ""

    def until(self, *words, seconds=60):
        deadline = time.monotonic() + seconds
        while not all(word in self.shown for word in words):
            assert time.monotonic() < deadline, f"{words} not in {self.shown[-3000:]}"
            self._read(0.2)

    def _read(self, seconds):
        """Whether anything came; at its end there is nothing any more."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            self.shown += os.read(self._master, 65536).decode(errors="replace")
        except OSError:
            return False
        return True

    def press(self, key):
        os.write(self._master, key.encode())

    def ended(self, seconds=60):
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        while self._read(0.1):
            pass
        return self.process.poll()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        os.close(self._master)


@pytest.fixture
def terminal():
    made = []

    def make(*arguments):
        made.append(Terminal(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_top_in_a_terminal(make_yard, terminal):
    yard = make_yard(max_concurrent=1).start()
    job = training(yard, 600)
    waiting = yard.submit(["true"], name="behind it")
    page = terminal(yard, "top")
    page.until(job, waiting, "\x1b[?1049h", "100%", "0.025")
    yard.api("POST", f"/jobs/{job}/force-kill?wait=20")
    page.until("Nothing runs", "2 ended")
    page.press("q")
    assert page.ended() == 0
    assert page.shown.rstrip().endswith("\x1b[?25h\x1b[?1049l")


def test_top_over_a_restart_of_the_server(make_yard, terminal):
    yard = make_yard("--on-shutdown", "keep").start()
    job = training(yard, 600)
    page = terminal(yard, "top")
    page.until(job, "live")
    yard.kill9()
    page.until("reconnecting")
    yard.start()
    page.shown = ""
    page.until(job, "live")
    page.press("q")
    assert page.ended() == 0
    assert yard.cancel(job).ok


def test_ctrl_c_leaves_the_terminal_as_it_was(yard, terminal):
    page = terminal(yard, "top")
    page.until("Nothing runs")
    page.process.send_signal(2)
    assert page.ended() == 130
    assert page.shown.rstrip().endswith("\x1b[?25h\x1b[?1049l")


def test_into_a_pipe(yard):
    job = training(yard, 0)
    yard.wait(job, "completed")
    for words in (("top",), ("top", "--once")):
        done = yard.cli(*words)
        assert done.returncode == 0, done.stderr
        assert "1 ended" in done.stdout
        assert "\x1b" not in done.stdout
    assert json.loads(yard.cli("top", "--json").stdout)["counts"]["completed"] == 1
    drawn = yard.cli("metrics", job).stdout
    assert "last 0.025" in drawn
    assert "highest 2.5" in drawn
    found = json.loads(yard.cli("metrics", job, "--json", "--keys", "loss").stdout)
    assert len(found["series"]["loss"]["values"]) == 100
    assert "loss" in yard.cli("metrics", job, "--names").stdout.splitlines()
    few = json.loads(yard.cli("metrics", job, "--json", "--points", "9", "-k", "loss").stdout)
    assert len(few["series"]["loss"]["values"]) <= 9
    assert {2.5, 0.025} <= set(few["series"]["loss"]["values"])


def test_every_point_is_told_once_while_it_runs(yard):
    """`metrics --watch` in a pipe, begun before the first point."""
    job = yard.submit([sys.executable, "-c", TRAINING.replace("SLEEP", "0")], hold=True)
    env = yard.env | {"RUNYARD_URL": yard.url, "RUNYARD_API_KEY": yard.key}
    argv = [sys.executable, "-m", "runyard", "metrics", job, "--watch", "-k", "loss"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        yard.cli("release", job)
        out, _ = process.communicate(timeout=60)
    values = [float(line.split()[3]) for line in out.splitlines()]
    assert sorted(values, reverse=True) == [round(2.5 / n, 4) for n in range(1, 101)]
    assert process.returncode == 0


def test_curves_grow_in_a_terminal(yard, terminal, tmp_path):
    go = tmp_path / "go"
    job = training(yard, go)
    page = terminal(yard, "metrics", job, "--watch", "--keys", "loss")
    page.until("\x1b[?1049h", "last 0.025")
    go.touch()
    assert page.ended() == 0
    assert "100 points" in page.shown[page.shown.rindex("\x1b[?1049l") :]


def test_what_is_not_there(yard):
    assert yard.cli("metrics", "job-nothing0000").returncode == 4
    job = yard.submit(["true"], hold=True)
    assert "no metrics" in yard.cli("metrics", job).stdout
    assert yard.cli("metrics", job, "--points", "0").returncode == 2
