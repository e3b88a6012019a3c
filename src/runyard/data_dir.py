"""The data directory of a server: made private, checked, and held by one server at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runyard.domain import errors

# Types (as /proc/mounts names them) on which locks and sockets cannot be trusted.
_NETWORK_KINDS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "9p",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "glusterfs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.juicefs",
        "ncpfs",
        "ocfs2",
    }
)

_OCTAL = re.compile(r"\\([0-7]{3})")  # how a space in a mount point is written there


class DataDir:
    """Opened by `open`; holds `server.lock` until closed."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> DataDir:
        """Make and check it, and take it for this server; StartRefused says why not."""
        _make(path)
        kind = file_system_kind(path)
        if kind in _NETWORK_KINDS:
            proposal = Path(tempfile.gettempdir()) / f"runyard-{os.getuid()}"
            raise errors.NetworkFileSystem(path=str(path), kind=kind, proposal=str(proposal))
        return cls(path, _take(path))

    @contextmanager
    def published(self, url: str) -> Iterator[None]:
        """Tell local clients where this server listens, for as long as it does: a key must not be
        sent to whoever has the port after us."""
        path = self.path / "server.json"
        aside = self.path / "server.json.new"
        aside.write_text(json.dumps({"url": url, "pid": os.getpid()}) + "\n")
        os.replace(aside, path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def __enter__(self) -> DataDir:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another server have it."""
        os.close(self._lock)


def file_system_kind(path: Path, mounts: str = "/proc/mounts") -> str:
    """The type of the file system a path is on; empty where that cannot be told."""
    path = Path(os.path.realpath(path))
    try:
        lines = Path(mounts).read_text().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[1])
        inside = str(path) == point or str(path).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def is_network(kind: str) -> bool:
    """Whether locks and sockets cannot be trusted on a file system of this type."""
    return kind in _NETWORK_KINDS


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
        if found.st_uid == os.getuid() and found.st_mode & 0o077:
            path.chmod(found.st_mode & 0o700)  # one that its owner made read-only stays so
        for name in ("attempts", "outputs", "logs", "cache"):
            (path / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise errors.DataDirUnusable(path=str(path), why=error.strerror or str(error)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise errors.DataDirUnusable(path=str(path), why="it cannot be written")


def _take(path: Path) -> int:
    try:
        lock = os.open(path / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise errors.DataDirUnusable(path=str(path), why=error.strerror or str(error)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise errors.DataDirInUse(path=str(path), pid=holder) from None
    # A full disk must not keep a server from starting: the pid is only for people.
    with contextlib.suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock
