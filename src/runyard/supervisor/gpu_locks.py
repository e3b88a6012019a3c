"""One lock file per GPU, shared by all servers of a machine, held while an attempt has the GPU."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from typing import Any


def take(locks: Iterable[Mapping[str, Any]], held: list[int]) -> dict[str, Any] | None:
    """Take every lock and append its descriptor to `held`; what stands in the way otherwise."""
    for lock in locks:
        path = lock["path"]
        try:
            fd = _open(path)
        except OSError as error:
            return {"path": path, "errno": error.errno, "message": error.strerror}
        held.append(fd)
        owner = _take_one(fd, lock["server_id"], bool(lock.get("shared")))
        if owner is not None:
            return {"path": path, "owner": owner}
    return None


def _open(path: str) -> int:
    """Linux can refuse O_CREAT on another user's file in a shared folder, though it may be opened:
    so it is created only when it is not there."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        os.fchmod(fd, 0o666)  # whatever our umask is
        return fd


def _take_one(fd: int, server_id: str, shared: bool) -> str | None:
    """None if it was taken, else the server that has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(fd, 256, 0).decode("utf-8", "replace").strip()
        if not shared or owner != server_id:
            return owner or "unknown"
        return _take_shared(fd, owner)
    os.ftruncate(fd, 0)
    os.pwrite(fd, server_id.encode(), 0)
    return _take_shared(fd, server_id) if shared else None


def _take_shared(fd: int, owner: str) -> str | None:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return owner
    return None
