"""Where the lines of a log are, forwards and backwards, and where parts of it were dropped."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass

_BLOCK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that were dropped. `lines` is None when nobody had counted the lines in them."""

    start: int
    end: int
    lines: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A line: from its first byte to before its newline. At a gap it may be a part of one."""

    start: int
    end: int


Piece = Span | Gap


def extents(handle: int, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """(from, to, is a gap) for all bytes between `start` and `end`, in order."""
    while start < end:
        try:
            data = os.lseek(handle, start, os.SEEK_DATA)
        except OSError as error:
            # A file system that cannot say: all of it is data.
            data = end if error.errno == errno.ENXIO else start
        if data > start:
            yield start, min(data, end), True
            start = data
            continue
        try:
            hole = os.lseek(handle, start, os.SEEK_HOLE)
        except OSError:
            hole = end
        yield start, min(hole, end), False
        start = hole


def is_dropped(handle: int, place: int) -> bool:
    return next(extents(handle, place, place + 1))[2]


def forwards(handle: int, start: int, end: int) -> Iterator[Piece]:
    """Lines and gaps in order. A line cut by a gap comes in two parts."""
    begun: int | None = None  # start of a line whose end was not met yet
    for first, stop, is_gap in extents(handle, start, end):
        if is_gap:
            if begun is not None and begun < first:
                yield Span(begun, first)
            yield Gap(first, stop)
            begun = stop
            continue
        begun = first if begun is None else begun
        position = first
        while position < stop:
            data = os.pread(handle, min(_BLOCK, stop - position), position)
            if not data:
                break
            place = data.find(b"\n")
            while place >= 0:
                yield Span(begun, position + place)
                begun = position + place + 1
                place = data.find(b"\n", place + 1)
            position += len(data)
    if begun is not None and begun < end:
        yield Span(begun, end)


def last_lines(handle: int, size: int, count: int) -> list[Piece]:
    """The last `count` lines in order, with the gaps between them."""
    found: list[Piece] = []
    taken = 0
    for piece in _backwards(handle, size):
        if taken == count:
            break
        found.append(piece)
        taken += isinstance(piece, Span)
    if found and isinstance(found[-1], Gap) and taken == count:
        found.pop()
    return found[::-1]


def _backwards(handle: int, size: int) -> Iterator[Piece]:
    end = size
    if size and os.pread(handle, 1, size - 1) == b"\n":
        end -= 1  # the newline ends the last line, it does not begin another
    for first, stop, is_gap in reversed(list(extents(handle, 0, size))):
        if is_gap:
            yield Gap(first, stop)
            end = first
            continue
        position = min(stop, end)
        while position > first:
            start = max(first, position - _BLOCK)
            data = os.pread(handle, position - start, start)
            place = data.rfind(b"\n")
            while place >= 0:
                yield Span(start + place + 1, end)
                end = start + place
                place = data.rfind(b"\n", 0, place)
            position = start
        if first < end or first == 0:
            yield Span(first, end)
