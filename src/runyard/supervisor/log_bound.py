"""Keeping the log of an attempt within its cap by giving back its middle."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from runyard.supervisor import kernel, log_count, protocol

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt

HEAD = 1 << 20
_BLOCK = 4096
_COPY = 1 << 20


def bound(attempt: Attempt) -> None:
    fd = attempt.open_log()
    if fd >= 0:
        _bound(attempt, fd, protocol.LOG, {})


def bound_named(attempt: Attempt, name: str) -> None:
    """As `bound`, for another log in the attempt's folder."""
    try:
        fd = os.open(f"{attempt.folder}/{name}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _bound(attempt, fd, name, {"log": name})
    finally:
        os.close(fd)


def _bound(attempt: Attempt, fd: int, name: str, told: dict[str, str]) -> None:
    """Punch out everything but the first MiB and the newest half of the cap; offsets stay."""
    cap = int(attempt.spec.get("log_cap_bytes") or protocol.DEFAULT_LOG_CAP)
    info = os.fstat(fd)
    if info.st_blocks * 512 <= cap:
        return
    start = min(HEAD, cap // 4) // _BLOCK * _BLOCK
    end = (info.st_size - cap // 2) // _BLOCK * _BLOCK
    if end <= start:
        return
    with contextlib.suppress(OSError):  # a full disk must not keep the log from shrinking
        log_count.count_before_drop(fd, f"{attempt.folder}/{name}", end)
    try:
        if kernel.punch_hole(fd, start, end):
            attempt.journal.append("log_hole", {**told, "start": start, "end": end})
        else:
            _cut_out(fd, start, end)
            attempt.journal.append("log_hole", {**told, "start": start, "end": end, "cut": True})
    except OSError:
        pass  # a full disk: the next heartbeat tries again


def _cut_out(fd: int, start: int, end: int) -> None:
    """Where holes are not supported: move the newest part down. Lines written meanwhile may be
    lost, and offsets change."""
    position, target = end, start
    while chunk := os.pread(fd, _COPY, position):
        target += _pwrite_all(fd, chunk, target)
        position += len(chunk)
    os.ftruncate(fd, target)


def _pwrite_all(fd: int, data: bytes, offset: int) -> int:
    written = 0
    while written < len(data):
        written += os.pwrite(fd, data[written:], offset + written)
    return written
