"""Podman of somebody without rights: found by that person's server, and their jobs run in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from docker_engine import IMAGE
from image_jobs import LOOP, SHARE, run, settings_for, up
from podman_engine import PodmanEngine
from yards import RunningYard, alive, until

pytestmark = pytest.mark.root


class RootlessPodman(PodmanEngine):
    """At the person's usual socket, on storage that needs no rights. The person has no further
    users to map: all of an image is the person's own."""

    def __init__(self, folder: Path, person) -> None:
        super().__init__(folder, shutil.which("docker-init") or "")
        self._person = person
        self.runtime = folder / "runtime"
        (self.runtime / "podman").mkdir(parents=True)
        for made in (folder, self.runtime, self.runtime / "podman"):
            os.chown(made, person.uid, person.becoming["group"])
            made.chmod(0o700)
        self.socket_path = f"{self.runtime}/podman/podman.sock"
        self.socket = f"unix://{self.socket_path}"

    def _command(self, driver: str) -> list[str]:
        del driver
        uid, group = self._person.uid, self._person.becoming["group"]
        return [
            *("setpriv", f"--reuid={uid}", f"--regid={group}", "--clear-groups"),
            *("env", f"HOME={self.folder}", f"XDG_RUNTIME_DIR={self.runtime}"),
            *super()._command("vfs")[1:],
        ]

    def stop(self) -> None:
        super().stop()
        until(self._none_left, words=self._person.processes)

    def _none_left(self) -> bool:
        left = [pid for pid in self._person.processes() if alive(pid)]
        for pid in left:  # its pause process, which holds the namespaces
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left


@pytest.fixture
def rootless(person):
    for program in ("podman", "conmon", "runc", "docker", "setpriv", "newuidmap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if not person.becoming:
        pytest.skip("nobody else can be made here")
    folder = Path(tempfile.mkdtemp(prefix="runyard-rootless-"))
    engine = RootlessPodman(folder, person)
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def yard(person, rootless):
    home = person.folder(f"rootless-{os.urandom(4).hex()}")
    env = settings_for(rootless) | {
        "RUNYARD_DOCKER_HOST": "",  # wherever a person's engine usually is
        "XDG_RUNTIME_DIR": str(rootless.runtime),
    }
    made = RunningYard(
        home / "yard",
        data_dir=home / "data",
        python=person.python,
        becoming=person.becoming,
        env=env,
    )
    made.folder.mkdir()
    os.chown(made.folder, person.uid, -1)
    yield made.start()
    made.stop()
    assert rootless.containers() == []


def test_a_persons_own_podman_is_found_and_runs_jobs(yard, rootless, person):
    """R8, R34: by a server without any rights; root inside is the person outside."""
    said = yard.cli("doctor").stdout
    assert rootless.socket_path in said
    ref, job = run(yard, "id -u; echo text >kept; exit 3", "failed")
    assert job["reason"] == {"code": "exit_code", "params": {"code": 3}}
    assert yard.logs(ref) == ["0"]
    assert (yard.data / "outputs" / ref / "kept").stat().st_uid == person.uid
    looping = up(yard, f"trap 'echo asked; exit 5' TERM; {LOOP}")
    [container] = rootless.containers()
    assert rootless.inspect(container)["Config"]["Labels"]["runyard.job"] == looping
    answer = yard.cancel(looping)
    assert answer.body["status"] == "cancelled"
    assert answer.body["receipt"]["proof"] == "container_removed"
    assert "asked" in yard.logs(looping)
    assert yard.attempts(looping)[0]["exit_code"] == 5


def test_it_is_adopted_by_the_persons_next_server(yard):
    """R42, R43"""
    ref = up(yard, f"trap 'exit 6' TERM; {LOOP}")
    yard.kill9()
    yard.start()
    assert yard.status(ref) == "running"
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert yard.attempts(ref)[0]["exit_code"] == 6
    assert yard.wait(yard.submit("true", image=IMAGE, **SHARE), "completed", seconds=60)
