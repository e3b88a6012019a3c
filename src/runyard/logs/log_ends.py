"""The parts of a log that tell why its program failed: the lines that speak of errors, and the
end. Bounded, whatever the log holds."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from runyard.logs.log_file import LogFile
from runyard.logs.log_spans import extents

TAIL_BYTES = 96 * 1024
MOST_TAIL_LINES = 400
HEAD_BYTES = 64 * 1024
BEFORE_TAIL_BYTES = 1024 * 1024  # searched for the first lines that speak of errors
MOST_ERROR_LINES = 120
_AFTER = 3  # lines of a message that follow the one that was found
_LONGEST = 8 * 1024
_SPEAKS_OF_ERRORS = re.compile(
    rb"Error|Exception|Traceback|error:|ERROR|FATAL|fatal|NaN|Killed|Xid|No space|out of memory"
)

Numbered = tuple[int, str]  # counted from 1


@dataclass(frozen=True, slots=True)
class LogEnds:
    first_errors: tuple[Numbered, ...] = ()
    tail: tuple[Numbered, ...] = ()


def read(path: str) -> LogEnds:
    """Empty where there is no log. Raises nothing for one that is binary, huge or has gaps."""
    log = LogFile(path)
    try:
        with log.opened() as (handle, size):
            if size == 0:
                return LogEnds()
            log.index.extend(handle, size)
            start = _line_start(handle, max(0, size - TAIL_BYTES))
            tail = _lines(log, handle, start, size)[-MOST_TAIL_LINES:]
            errors = _error_lines(log, handle, 0, min(start, HEAD_BYTES))
            middle = max(HEAD_BYTES, start - BEFORE_TAIL_BYTES)
            errors += _error_lines(log, handle, middle, start)
            return LogEnds(tuple(errors[:MOST_ERROR_LINES]), tuple(tail))
    except OSError:
        return LogEnds()


def _line_start(handle: int, place: int) -> int:
    """The first line that begins at or after it; the place itself inside one endless line."""
    if place == 0:
        return 0
    data = os.pread(handle, TAIL_BYTES, place - 1)
    found = data.find(b"\n", 0, -1)
    return place if found < 0 else place + found


def _lines(log: LogFile, handle: int, start: int, end: int) -> list[Numbered]:
    number = log.index.before(handle, start) + 1
    data = _data(handle, start, end)
    if data.endswith(b"\n"):
        data = data[:-1]
    return [(number + place, _text(line)) for place, line in enumerate(data.split(b"\n"))]


def _error_lines(log: LogFile, handle: int, start: int, end: int) -> list[Numbered]:
    """Lines that speak of errors, with what follows each."""
    if start >= end:
        return []
    data = _data(handle, start, end)
    first = log.index.before(handle, start) + 1
    found: list[Numbered] = []
    number, counted, place = first, 0, 0
    while len(found) < MOST_ERROR_LINES and (seen := _SPEAKS_OF_ERRORS.search(data, place)):
        begin = data.rfind(b"\n", 0, seen.start()) + 1
        number += data.count(b"\n", counted, begin)
        counted = begin
        for _ in range(1 + _AFTER):
            stop = data.find(b"\n", begin)
            stop = len(data) if stop < 0 else stop
            found.append((number, _text(data[begin:stop])))
            number, counted = number + 1, stop + 1
            begin = stop + 1
            if begin >= len(data):
                return found
        place = begin
    return found


def _data(handle: int, start: int, end: int) -> bytes:
    """What is there of it: dropped parts would only be zeros."""
    if not any(is_gap for *_, is_gap in extents(handle, start, end)):
        return os.pread(handle, end - start, start)
    return b"".join(
        # The lines that were dropped are counted by nobody here, so those before stay numbered.
        b"" if is_gap else os.pread(handle, stop - first, first)
        for first, stop, is_gap in extents(handle, start, end)
    )


def _text(line: bytes) -> str:
    if len(line) > _LONGEST:
        line = line[: _LONGEST // 2] + b" ... " + line[-_LONGEST // 2 :]
    return line.decode("utf-8", "replace")
