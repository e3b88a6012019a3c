"""As a new user would: start it, submit, look, follow, cancel, stop. Nothing is left behind."""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from yards import SETTINGS, free_port, keepers_of, until

TRAINING = """
import sys, time
for step in range(10**6):
    print(f"step {step} loss {1 / (step + 1):.3f}", flush=True)
    if step == 3 and sys.argv[1] == "short":
        break
    time.sleep(0.05)
"""


@dataclass
class Newcomer:
    """Has a home and a terminal, and has read the first page of the README."""

    home: Path
    python: str
    becoming: dict[str, Any]
    port: int

    @property
    def env(self) -> dict[str, str]:
        return {
            **SETTINGS,
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }

    def start(self, *words: object, to: int = subprocess.PIPE) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, "-m", "runyard", *map(str, words)],
            env=self.env,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=subprocess.STDOUT,
            text=True,
            **self.becoming,
        )

    def runyard(self, *words: object, code: int = 0) -> str:
        process = self.start(*words)
        said, _ = process.communicate(timeout=100)
        assert process.returncode == code, f"{words}: exit code {process.returncode}: {said}"
        assert "Traceback" not in said
        return said

    def jobs(self) -> dict[str, str]:
        return {job["job_id"]: job["status"] for job in json.loads(self.runyard("ls", "--json"))}


@pytest.fixture(params=["as_myself", "without_rights"])
def newcomer(request, tmp_path):
    port = free_port()
    if request.param == "as_myself":
        yield Newcomer(tmp_path, sys.executable, {}, port)
        return
    person = request.getfixturevalue("person")
    newcomer = Newcomer(person.folder(f"home{port}"), person.python, person.becoming, port)
    (newcomer.home / "train.py").write_text(TRAINING)
    yield newcomer
    until(lambda: not person.processes(), words=person.processes)  # the keeper is the last to go


class Server:
    """In a terminal of its own, as people start it."""

    def __init__(self, newcomer: Newcomer) -> None:
        self._terminal, other = os.openpty()
        os.set_blocking(self._terminal, False)
        self.process = newcomer.start("server", "--port", newcomer.port, to=other)
        os.close(other)
        self._shown = b""

    def shown(self) -> str:
        # At its end the terminal answers with an error instead of nothing.
        with contextlib.suppress(OSError):
            self._shown += os.read(self._terminal, 65536)
        return self._shown.decode(errors="replace")

    def wait_for(self, words: str) -> None:
        def seen() -> bool:
            return words in self.shown() or self.process.poll() is not None

        until(seen, 60, self.shown)
        assert words in self.shown(), self.shown()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        until(lambda: self.shown() and self.process.poll() is not None, 60, self.shown)
        return self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.interrupt()
        os.close(self._terminal)


@pytest.fixture
def server(newcomer):
    server = Server(newcomer)
    server.wait_for(f"http://127.0.0.1:{newcomer.port}")
    yield server
    server.close()


@pytest.mark.timeout(300)
def test_the_first_hour(newcomer, server):
    """One command gives a server; submit, ls, show, follow logs, cancel, Ctrl-C."""
    (newcomer.home / "train.py").write_text(TRAINING)
    data = newcomer.home / ".runyard"
    small = ["--gpus", "0", "--cpus", "0.1", "--mem", "100MB"]
    command = ["--", newcomer.python, "train.py"]

    ref = newcomer.runyard("submit", "-q", "--name", "short", *small, *command, "short").strip()
    assert re.fullmatch(r"job-[a-z0-9]+", ref)
    assert "loss 1.000" in newcomer.runyard("logs", "-f", ref)
    newcomer.runyard("wait", ref)
    assert "short" in newcomer.runyard("ls")
    assert "completed" in newcomer.runyard("show", ref)

    assert "step 3" in newcomer.runyard("run", *small, *command, "short")
    assert "not-there" in newcomer.runyard("run", *small, "--", "not-there", code=1)

    long = newcomer.runyard("run", "-d", "-q", "--name", "long", *small, *command, "long").strip()
    follower = newcomer.start("logs", "-f", long)
    lines = [follower.stdout.readline() for _ in range(5)]
    assert "step 0 loss 1.000\n" in lines, lines
    assert newcomer.jobs()[long] == "running"
    assert "cancelled" in newcomer.runyard("cancel", long)
    assert newcomer.jobs()[long] == "cancelled"
    follower.communicate(timeout=60)
    newcomer.runyard("logs", "job-2222222222222222", code=4)

    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "admin.key").stat().st_mode) == 0o600
    last = newcomer.runyard("run", "-d", "-q", *small, *command, "long").strip()
    until(lambda: newcomer.jobs()[last] == "running")
    assert server.interrupt() == 0, server.shown()
    assert "cancelling 1 running jobs" in server.shown()
    until(lambda: not keepers_of(data), words=lambda: keepers_of(data))
    assert "does not answer" in newcomer.runyard("ls", code=3)


@pytest.mark.usefixtures("server")
def test_doctor_finds_nothing_to_complain_about(newcomer):
    assert str(newcomer.home / ".runyard") in newcomer.runyard("doctor")
