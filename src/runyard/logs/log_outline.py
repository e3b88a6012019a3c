"""The shape of a log without its text: how many lines, what was dropped, where it goes on."""

from __future__ import annotations

import os
from dataclasses import dataclass

from runyard.logs.log_file import LogFile
from runyard.logs.log_index import LineIndex
from runyard.logs.log_spans import extents

_OPEN_LINE = 64 * 1024  # of an unfinished line, what is sent once more to whoever follows


@dataclass(frozen=True, slots=True)
class Dropped:
    """Bytes that were dropped, between two lines that are there. Both lines have the same number
    where a single line was cut."""

    start: int
    end: int
    before: int  # number of the last line before them; -1 when there is none
    after: int  # number of the line that goes on behind them


@dataclass(frozen=True, slots=True)
class Outline:
    total: int  # lines, dropped and unfinished ones included
    unfinished: bool  # the last line has no end yet
    resume: int  # the byte from which on a reader of all these lines must be told more
    dropped: tuple[Dropped, ...] = ()


def outline(log: LogFile, size: int) -> Outline:
    """Of the first `size` bytes of a log. The first time every byte is read, to count."""
    with log.opened() as (handle, now):
        size = min(size, now)
        if not size:
            return Outline(0, False, 0)
        log.index.extend(handle, now)
        gaps = [(start, end) for start, end, is_gap in extents(handle, 0, size) if is_gap]
        open_ended = os.pread(handle, 1, size - 1) != b"\n"
        return Outline(
            log.index.before(handle, size) + open_ended,
            open_ended,
            _resume(handle, gaps[-1][1] if gaps else 0, size),
            tuple(_dropped(handle, log.index, start, end) for start, end in gaps),
        )


def _dropped(handle: int, index: LineIndex, start: int, end: int) -> Dropped:
    before = index.before(handle, start)
    cut = start > 0 and os.pread(handle, 1, start - 1) != b"\n"
    return Dropped(start, end, before if cut else before - 1, index.before(handle, end))


def _resume(handle: int, first: int, size: int) -> int:
    """Where what an unfinished line shows begins, so that it can be told again and go on; `size`
    after a whole line, and for a line too long to be told again."""
    start = max(first, size - _OPEN_LINE)
    data = os.pread(handle, size - start, start)
    line = data[data.rfind(b"\n") + 1 :]
    shown = line.rstrip(b"\r")
    place = size - len(line) + shown.rfind(b"\r") + 1
    return size if place == start and start > first else place
