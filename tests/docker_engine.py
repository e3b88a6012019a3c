"""A throwaway Docker engine, started by hand on folders of its own, and containers in it.

The image is an empty root; programs come from the host's usr tree, mounted read-only, so nothing
is downloaded and a container with the host's Python starts in a third of a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

UID = 1000  # whom containers run as: nobody special, with Docker's default profile
CHECKOUT = Path(__file__).parent.parent
IMAGE = "runyard-test/host:1"
_PATH = f"/usr/sbin:/usr/bin:{os.environ.get('PATH', os.defpath)}"
_READY_S = 60
_PASSWD = f"root:x:0:0::/:/bin/sh\nsomebody:x:{UID}:{UID}::/tmp:/bin/sh\n"
_GROUP = f"root:x:0:\nsomebody:x:{UID}:\n"


class DockerEngine:
    """dockerd as our child, so that it is ended by its own pid, never by name."""

    network_options: tuple[str, ...] = ("--bridge=none", "--userland-proxy=false")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket_path = f"{folder}/docker.sock"
        self.socket = f"unix://{self.socket_path}"
        self._driver = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._cgroup = folder.name

    def start(self) -> None:
        said = ""
        for driver in ("overlay2", "vfs"):  # the second where overlay is refused
            with open(self._log, "wb") as log:
                self._process = subprocess.Popen(
                    self._command(driver), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            if self._ready():
                self._driver = driver
                self._make_image()
                return
            said = self._log.read_text(errors="replace")[-2000:]
            self._end()
        raise AssertionError(f"dockerd does not start: {said}")

    def _command(self, driver: str) -> list[str]:
        return [
            *("dockerd", "--data-root", f"{self.folder}/data", "--exec-root"),
            *(f"{self.folder}/exec", "-H", self.socket, "-p", f"{self.folder}/docker.pid"),
            *("--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"),
            *(*self.network_options, f"--storage-driver={driver}"),
            *("--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", f"/{self._cgroup}"),
        ]

    @property
    def _log(self) -> Path:
        return self.folder / "dockerd.log"

    def _ready(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if self.docker("version", check=False).returncode == 0:
                return True
            time.sleep(0.05)
        return False

    def docker(
        self, *arguments: object, check: bool = True, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """One call of the docker command."""
        done = subprocess.run(
            ["docker", "-H", self.socket, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={"PATH": _PATH, "HOME": str(self.folder)},
            check=False,
        )
        assert done.returncode == 0 or not check, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    def run(
        self,
        *command: object,
        options: tuple[object, ...] = (),
        check: bool = True,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a default container without network, as a plain user, and wait."""
        arguments = (*container_options(), *options, IMAGE, *command)
        return self.docker("run", "--rm", *arguments, check=check, timeout=timeout)

    @contextlib.contextmanager
    def container(self, *command: object, options: tuple[object, ...] = ()) -> Iterator[str]:
        """The same in the background; the container's id, removed with all that runs in it."""
        arguments = (*container_options(), *options, IMAGE, *command)
        name = self.docker("run", "--detach", *arguments).stdout.strip()
        try:
            yield name
        finally:
            self.docker("rm", "--force", name)

    def _make_image(self) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder) as made:
            root = Path(made)
            # `sbin` must be a real directory, or an init cannot be mounted into it.
            for name in ("usr", "tmp", "proc", "sys", "dev", "etc", "sbin"):
                (root / name).mkdir()
            (root / "tmp").chmod(0o1777)
            for name in _links_into_usr():
                (root / name).symlink_to(f"usr/{name}")
            (root / "etc/passwd").write_text(_PASSWD)
            (root / "etc/group").write_text(_GROUP)
            archive = self.folder / "image.tar"
            with tarfile.open(archive, "w") as tar:
                tar.add(root, arcname=".")
        self.docker("import", archive, IMAGE)

    @property
    def archive(self) -> bytes:
        """The image's root as a tar."""
        return (self.folder / "image.tar").read_bytes()

    def containers(self, label: str = "runyard.attempt") -> list[str]:
        """Ids of all there are with a label, running or not."""
        listed = self.docker("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={label}")
        return listed.stdout.split()

    def inspect(self, container: str) -> dict[str, Any]:
        [found] = json.loads(self.docker("inspect", container).stdout)
        return found

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def kill9(self) -> None:
        """As a crash would: the containers live on."""
        assert self._process is not None
        daemon = int((self.folder / "exec/containerd/containerd.pid").read_text())
        self._process.kill()
        self._process.wait()
        # It dies with its parent; the next one would wait for a number that is not free yet.
        deadline = time.monotonic() + _READY_S
        while os.path.exists(f"/proc/{daemon}") and time.monotonic() < deadline:
            time.sleep(0.05)

    def start_again(self) -> None:
        """After a crash."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._command(self._driver), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        assert self._ready(), self._log.read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        """End it and everything in it, and leave no mount and no control group behind."""
        listed = self.docker("ps", "--all", "--quiet", check=False).stdout.split()
        if listed:
            self.docker("rm", "--force", *listed, check=False)
        self._end()
        self._end_shims()
        for mounted in _mounts_below(self.folder):
            subprocess.run(["umount", "--lazy", mounted], check=False, capture_output=True)
        for controller in ("*", "."):
            for group in Path("/sys/fs/cgroup").glob(f"{controller}/{self._cgroup}"):
                _remove_group(group)

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._end_containerd()
        self._process = None

    def _end_shims(self) -> None:
        """What a killed engine left: the parents of its containers, which know its folder."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
                if b"containerd-shim" in words and f"{self.folder}/exec/".encode() in words:
                    inside = (entry / "task" / entry.name / "children").read_text().split()
                    for pid in [*inside, entry.name]:
                        os.kill(int(pid), signal.SIGKILL)

    def _end_containerd(self) -> None:
        """dockerd ends the one it started, unless it is killed itself."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.folder / "exec/containerd/containerd.pid").read_text())
            if str(self.folder) in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)


def container_options() -> list[str]:
    """Docker's defaults for a plain user, and the host's programs and libraries to read."""
    options = ["--user", f"{UID}:{UID}", "--network", "none", "--env", "HOME=/tmp"]
    for place in host_places():
        options += read_only(place)
    return options


def host_places() -> list[str]:
    """Where the host's programs and libraries are."""
    places = ["/usr", *(f"/{name}" for name in _outside_usr())]
    return places + [p for p in ("/etc/alternatives", "/etc/ld.so.cache") if os.path.exists(p)]


def read_only(place: object) -> list[str]:
    """Mount a place of the host at the same path."""
    return ["--mount", f"type=bind,source={place},target={place},readonly"]


def python_places() -> list[str]:
    """What a container needs to run this interpreter with this checkout and its packages."""
    places = {str(CHECKOUT), sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve())}
    outer = [Path(place) for place in places if not place.startswith("/usr/")]
    return sorted(str(p) for p in outer if not any(q in p.parents for q in outer))


def _links_into_usr() -> list[str]:
    return [name for name in ("bin", "lib", "lib64") if os.path.islink(f"/{name}")]


def _outside_usr() -> list[str]:
    """On a system whose programs are not all below usr."""
    names = ("bin", "lib", "lib64")
    return [n for n in names if os.path.isdir(f"/{n}") and not os.path.islink(f"/{n}")]


def _mounts_below(folder: Path) -> list[str]:
    """The deepest first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    below = [line.split()[1] for line in lines if line.split()[1].startswith(f"{folder}/")]
    return sorted(below, key=len, reverse=True)


def _remove_group(group: Path) -> None:
    folders = [Path(found) for found, _, _ in os.walk(group, topdown=False)]
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


@pytest.fixture(scope="session")
def docker_engine():
    """One engine for all tests of a worker; tests that use it are kept in one worker."""
    with running_engine() as engine:
        yield engine


@pytest.fixture
def own_docker_engine():
    """One that a test may kill."""
    with running_engine() as engine:
        yield engine


@contextlib.contextmanager
def running_engine(kind: type[DockerEngine] = DockerEngine) -> Iterator[DockerEngine]:
    """What is missing for it skips on a desk, and fails in CI."""
    if os.geteuid() != 0:
        _is_missing("a Docker engine is started by root only")
    for program in ("dockerd", "docker", "containerd", "iptables"):
        if shutil.which(program, path=_PATH) is None:
            _is_missing(f"{program} is not installed")
    folder = Path(tempfile.mkdtemp(prefix="runyard-docker-"))
    engine = kind(folder)
    try:
        try:
            engine.start()
        except AssertionError as error:
            _is_missing(str(error))
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _is_missing(what: str) -> NoReturn:
    """Skips on a desk; in CI a skip is a failure."""
    pytest.skip(what)
