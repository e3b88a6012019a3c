"""Whether an attempt has a living supervisor: the kernel's answer, by a lock it holds."""

from __future__ import annotations

import fcntl
import os
import struct

from runyard.supervisor import protocol

_FLOCK = "hhqqixxxx"
_QUERY = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, protocol.LIVENESS_BYTE, 1, 0)


def hold(fd: int) -> bool:
    """Take the lock for as long as this process keeps the journal open; False if it is held."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, protocol.LIVENESS_BYTE)
    except (BlockingIOError, PermissionError):
        return False
    return True


def held(fd: int) -> bool:
    """Whether another process holds the lock. Only the type counts: seen from another container
    the holder's pid is 0."""
    answer = fcntl.fcntl(fd, fcntl.F_GETLK, _QUERY)
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)


def supervisor_alive(folder: str) -> bool:
    try:
        fd = os.open(f"{folder}/{protocol.JOURNAL}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return held(fd)
    finally:
        os.close(fd)
