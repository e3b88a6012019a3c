"""Whether another server on this machine has a GPU: one lock file per GPU in a shared folder.

The supervisor of an attempt holds the file's flock as long as the attempt has the GPU and writes
its server's id into it. Looking must not get in the way of one who takes the lock that moment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

_LOCKS = Path("/proc/locks")
_FOLDER_MODE = 0o1777  # everybody makes files, nobody removes another's
_FILE_MODE = 0o666


class GpuLocks:
    """Never raises: a folder or file that cannot be used counts as not locked."""

    def __init__(self, folder: Path, server_id: str) -> None:
        self._folder = folder
        self._server_id = server_id

    def path(self, uuid: str) -> Path:
        return self._folder / uuid

    def prepare(self, uuid: str) -> None:
        """Make the lock file so that other people's servers can lock it, whatever our umask."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._folder.stat().st_uid == os.getuid():
                self._folder.chmod(_FOLDER_MODE)
        with contextlib.suppress(OSError):
            fd = os.open(self.path(uuid), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fchmod(fd, _FILE_MODE)
            finally:
                os.close(fd)

    def held_elsewhere(self, uuid: str) -> bool:
        return self.holder(uuid) is not None

    def holder(self, uuid: str) -> str | None:
        """The id of the other server that holds the GPU now, or None."""
        try:
            fd = os.open(self.path(uuid), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            self.prepare(uuid)
            return None
        except OSError:
            return None
        try:
            owner = os.pread(fd, 256, 0).decode("utf-8", "replace").strip()
            if owner in ("", self._server_id) or not _is_locked(fd):
                return None
            return owner
        except OSError:
            return None
        finally:
            os.close(fd)


def _is_locked(fd: int) -> bool:
    if _listed(fd):
        return True
    # A holder in another PID namespace is not listed, so the lock itself has to be asked. Only
    # files with another server's name get here, and that server is not the one about to ask us.
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def _listed(fd: int) -> bool:
    status = os.fstat(fd)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return False
    return any(device in line.split() and "FLOCK" in line and "->" not in line for line in lines)
