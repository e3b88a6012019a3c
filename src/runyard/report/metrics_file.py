"""Appending to the metrics file. It never raises and takes no lock, so it is safe in threads and
after a fork: each line is one write to a file opened for appending."""

from __future__ import annotations

import os
import time

PATH_VARIABLE = "RUNYARD_METRICS_FILE"
PER_RANK_VARIABLE = "RUNYARD_METRICS_PER_RANK"  # set where torchrun gives all ranks the same path

# The server reads by offset, so the file is never truncated or rotated. It is thinned instead.
THINNED_ABOVE = 64 * 2**20
CLOSED_ABOVE = 2**30
THINNED_EVERY_S = 1.0

# O_NONBLOCK: a named pipe without a reader must not hold up a training.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class _Account:
    """What this process remembers between lines."""

    dropped = 0
    torn = False  # the last write stopped inside a line
    thinned_at = float("-inf")


def path() -> str | None:
    """The file to append to; None outside a job."""
    given = os.environ.get(PATH_VARIABLE)
    if not given:
        return None
    own = rank() if os.environ.get(PER_RANK_VARIABLE) else 0
    if not own:
        return given
    stem, dot, suffix = given.rpartition(".")
    return f"{stem}-rank-{own}{dot}{suffix}"


def rank() -> int:
    text = os.environ.get("RANK", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0


def append(line: bytes, *, important: bool = False) -> bool:
    """Whether the whole line is in the file. `important` ones are not thinned."""
    target = path()
    if target is None:
        return False
    try:
        written = _append(target, line, important)
    except Exception:  # the folder is gone, the disk is full: never the training's trouble
        written = False
    if not written:
        count_dropped()
    return written


def dropped() -> int:
    """How many lines of this process did not reach the file."""
    return _Account.dropped


def count_dropped() -> None:
    _Account.dropped += 1


def _append(target: str, line: bytes, important: bool) -> bool:
    fd = os.open(target, _FLAGS, 0o644)
    try:
        if not _may_grow(os.fstat(fd).st_size, important):
            return False
        whole = b"\n" + line if _Account.torn else line
        count = os.write(fd, whole)
        if count < len(whole):  # a disk that just became full
            _Account.torn = True
            count += os.write(fd, whole[count:])
        _Account.torn = count < len(whole)
        return not _Account.torn
    finally:
        os.close(fd)


def _may_grow(size: int, important: bool) -> bool:
    if size < THINNED_ABOVE:
        return True
    if size >= CLOSED_ABOVE:
        return False
    now = time.monotonic()
    if not important and 0 <= now - _Account.thinned_at < THINNED_EVERY_S:
        return False
    _Account.thinned_at = now
    return True
