"""As a new user would: clone, make run, submit, list, follow, cancel, Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

import yards

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = [
    pytest.param([], id="as-me"),
    pytest.param(["runuser", "-u", "nobody", "--"], id="unprivileged", marks=pytest.mark.root),
]


@pytest.fixture
def home():
    """Open to another user too, unlike the folders that pytest makes."""
    folder = Path(tempfile.mkdtemp(prefix="runyard-clone-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.timeout(900)
@pytest.mark.parametrize("person", PEOPLE)
def test_a_clone_runs_with_one_command(home, person):
    """R8 R13 R36 R40"""
    if person and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if person:  # which otherwise gets the home of the system's record
        person = [*person, "env", f"HOME={home}"]
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("RUNYARD_")},
        "HOME": str(home),
    }

    def command(*words: object, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*person, *map(str, words)],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    if not command(ROOT / "scripts/find-python").stdout.strip():
        environment["PATH"] = "/usr/local/bin:/usr/bin:/bin"  # not in another's home
    clone = home / "runyard"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True, cwd=home)
    if person:
        shutil.chown(home, "nobody")
        subprocess.run(["chown", "-R", "nobody", clone], check=True)
    if not command(clone / "scripts/find-python").stdout.strip():
        missing("no Python 3.11 that this user may run")
    port = yards.free_port()
    with (home / "out").open("wb") as out:
        running = subprocess.Popen(
            [*person, "make", "-C", str(clone), "run", f"RUN_ARGS=--port {port}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        said = home / "out"
        yards.until(
            lambda: "loss=" in said.read_text() or running.poll() is not None, 600, every=0.5
        )
        assert running.poll() is None, said.read_text()
        assert f"http://127.0.0.1:{port}" in said.read_text()
        runyard = clone / ".venv/bin/runyard"
        job = command(
            runyard, "run", "-d", "--", "sh", "-c", "echo hello; sleep 600"
        ).stdout.strip()
        assert job.startswith("job-")
        yards.until(lambda: "hello" in command(runyard, "logs", job).stdout)
        assert job in command(runyard, "ls").stdout
        assert command(runyard, "cancel", job).returncode == 0
        assert "cancelled" in command(runyard, "show", job).stdout
    finally:
        os.killpg(running.pid, signal.SIGINT)
        try:
            running.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    yards.until(lambda: not with_marker(str(home)), words=lambda: with_marker(str(home)))


def missing(what: str) -> None:
    """A missing part skips on a desk and fails in CI."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def with_marker(text: str) -> list[str]:
    """Command lines of processes that name the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found
