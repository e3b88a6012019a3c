"""A throwaway podman with its Docker-compatible socket, on folders of its own, by its own pid.

Told by files of its own, so that neither the machine's podman nor systemd has a part in it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from docker_engine import DockerEngine

# Ulimits: the built-in ones exceed a hard limit. runc: crun refuses hybrid control groups.
# Locks in a file: the others are one segment of shared memory for the whole machine.
_CONTAINERS = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
init_path = "{init}"
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
_STORAGE = """\
[storage]
driver = "{driver}"
graphroot = "{folder}/data"
runroot = "{folder}/run"
"""
_DRIVERS = {"overlay2": "overlay"}  # as podman calls it
_GROUPS = "libpod_parent"


class PodmanEngine(DockerEngine):
    """`podman system service` as our child; its containers are watched by a conmon each."""

    def __init__(self, folder: Path, init: str) -> None:
        super().__init__(folder)
        self.socket_path = f"{folder}/podman.sock"
        self.socket = f"unix://{self.socket_path}"
        self._init = init

    def _command(self, driver: str) -> list[str]:
        containers, storage = self.folder / "containers.conf", self.folder / "storage.conf"
        containers.write_text(_CONTAINERS.format(folder=self.folder, init=self._init))
        named = _DRIVERS.get(driver, driver)
        storage.write_text(_STORAGE.format(folder=self.folder, driver=named))
        return [
            # conmon leaves a file where it is when memory runs out.
            *("env", f"--chdir={self.folder}", f"CONTAINERS_CONF={containers}"),
            f"CONTAINERS_STORAGE_CONF={storage}",
            *("podman", "system", "service", "--time=0", self.socket),
        ]

    def kill9(self) -> None:
        """As a crash would: the containers live on."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        super().stop()
        for group in Path("/sys/fs/cgroup").glob(f"*/{_GROUPS}"):
            for folder in (group / "conmon", group):
                with contextlib.suppress(OSError):  # another podman's are in it
                    folder.rmdir()

    def _end_shims(self) -> None:
        """What a killed engine left: the parents of its containers, which know its folder."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
                if b"conmon" in words.split(b"\0")[0] and f"{self.folder}/".encode() in words:
                    inside = (entry / "task" / entry.name / "children").read_text().split()
                    for pid in [*inside, entry.name]:
                        os.kill(int(pid), signal.SIGKILL)


@pytest.fixture(scope="session")
def podman_engine():
    """One for all tests of a worker; tests that use it are kept in one worker."""
    with _engine(shutil.which("docker-init") or "") as engine:
        yield engine


@pytest.fixture
def podman_without_init():
    """As it is installed where nobody asked for catatonit."""
    with _engine("/nowhere/init") as engine:
        yield engine


@contextlib.contextmanager
def _engine(init: str) -> Iterator[PodmanEngine]:
    """What is missing skips on a desk; in CI a skip is a failure."""
    if os.geteuid() != 0:
        pytest.skip("podman's service is started by root only")
    for program in ("podman", "conmon", "runc", "docker"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = Path(tempfile.mkdtemp(prefix="runyard-podman-"))
    engine = PodmanEngine(folder, init)
    try:
        try:
            engine.start()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            pytest.skip(str(error))
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)
