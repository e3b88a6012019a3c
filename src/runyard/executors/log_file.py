"""Reads the log of an attempt: it may be huge, growing, binary, and have a gap in its middle."""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from runyard.domain import log_lines
from runyard.executors.log_index import LineIndex

_BLOCK = 256 * 1024
_LONG = 64 * 1024  # a line longer than this is not read whole
MOST_TEXT = 8 * 1024 * 1024  # characters in one answer


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


@dataclass(frozen=True, slots=True)
class Page:
    """Lines as text; a gap is a line of its own, which has no number, and is named in `gaps`."""

    lines: list[str]
    size: int  # of the log when it was read
    gaps: tuple[tuple[int, Gap], ...] = ()  # (place in `lines`, gap)
    first: int | None = None  # number of the first line
    following: int | None = None  # number of the line after the last
    numbers: list[int] | None = None  # of each line, where they do not follow each other
    complete: bool = True  # False when a limit cut the answer short


class LogFile:
    """Every method opens the file anew: it may appear late, and is read by many threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._index: LineIndex | None = None

    @contextmanager
    def opened(self) -> Iterator[tuple[int, int]]:
        """(descriptor, size); of an empty file when there is none yet."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            handle = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield handle, os.fstat(handle).st_size
        finally:
            os.close(handle)

    @property
    def index(self) -> LineIndex:
        if self._index is None:
            self._index = LineIndex(self.path)
        return self._index

    def size(self) -> int:
        with self.opened() as (_, size):
            return size

    def tail(self, count: int) -> Page:
        """The last `count` lines; reads only the end of the file."""
        with self.opened() as (handle, size):
            found = _last(handle, size, count)
            return _page(handle, size, found, newest_matter=True)

    def tail_offset(self, count: int) -> int:
        """The byte where the last `count` lines begin."""
        with self.opened() as (handle, size):
            spans = [piece for piece in _last(handle, size, count) if isinstance(piece, Span)]
            return spans[0].start if spans else size

    def line_offset(self, number: int) -> int:
        """The byte where a line begins; the end of the file when there are fewer lines."""
        with self.opened() as (handle, size):
            self.index.extend(handle, size)
            return self._start_of(handle, size, number)

    def lines(self, first: int, limit: int) -> Page:
        """Lines by number, counted from 0 at the start of the log, whatever was dropped since."""
        with self.opened() as (handle, size):
            self.index.extend(handle, size)
            start = self._start_of(handle, size, first)
            found: list[Piece] = []
            taken = 0
            for piece in _forwards(handle, start, size):
                if isinstance(piece, Gap):
                    piece = self._counted(handle, piece)
                elif taken == limit:
                    break
                else:
                    taken += 1
                found.append(piece)
            page = _page(handle, size, found)
            return self._numbered(handle, page, found, first)

    def raw(self, offset: int = 0, length: int | None = None) -> Iterator[bytes | Gap]:
        """The bytes as they were written, from the size the file has now, with gaps between."""
        with self.opened() as (handle, size):
            end = size if length is None else min(size, offset + length)
            for start, stop, is_gap in extents(handle, offset, end):
                if is_gap:
                    yield Gap(start, stop)
                    continue
                while start < stop:
                    data = os.pread(handle, min(_BLOCK, stop - start), start)
                    if not data:
                        return
                    start += len(data)
                    yield data

    def _start_of(self, handle: int, size: int, number: int) -> int:
        """Where a line begins; the beginning of the gap when it was dropped."""
        if number <= 0:
            return 0
        place, exists = self.index.find(handle, number, size)
        if exists:
            return place
        for start, stop, is_gap in extents(handle, 0, size):
            if is_gap and stop > place:
                return start
        return place

    def _counted(self, handle: int, gap: Gap) -> Gap:
        lines = self.index.before(handle, gap.end) - self.index.before(handle, gap.start)
        return Gap(gap.start, gap.end, lines or None)

    def _numbered(self, handle: int, page: Page, found: Sequence[Piece], first: int) -> Page:
        spans = [piece for piece in found if isinstance(piece, Span)][: len(page.lines)]
        if not spans:
            return Page(page.lines, page.size, page.gaps, first, first, None, page.complete)
        number = self.index.before(handle, spans[0].start)
        following = self.index.before(handle, spans[-1].start) + 1
        return Page(page.lines, page.size, page.gaps, number, following, None, page.complete)


class LogFiles:
    """Keeps the counted lines of the logs that were asked for last."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._lock = Lock()
        self._files: OrderedDict[str, LogFile] = OrderedDict()

    def at(self, path: str) -> LogFile:
        with self._lock:
            found = self._files.pop(path, None) or LogFile(path)
            self._files[path] = found
            while len(self._files) > self._most:
                self._files.popitem(last=False)
            return found


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


def _forwards(handle: int, start: int, end: int) -> Iterator[Piece]:
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


def _last(handle: int, size: int, count: int) -> list[Piece]:
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


def _page(handle: int, size: int, found: Sequence[Piece], *, newest_matter: bool = False) -> Page:
    """The pieces as text, as many as one answer may hold."""
    lines: list[str] = []
    gaps: list[tuple[int, Gap]] = []
    room = MOST_TEXT
    for piece in reversed(found) if newest_matter else found:
        if isinstance(piece, Gap):
            gaps.append((len(lines), piece))
            lines.append(log_lines.gap_line(piece.end - piece.start))
        else:
            lines.append(text_of(handle, piece))
        room -= len(lines[-1])
        if room < 0:
            break
    complete = len(lines) == len(found)
    if newest_matter:
        lines.reverse()
        gaps = [(len(lines) - 1 - place, gap) for place, gap in reversed(gaps)]
    return Page(lines, size, tuple(gaps), complete=complete)


def text_of(handle: int, span: Span) -> str:
    """A line as people read it. Of a very long one only what is shown is read."""
    length = span.end - span.start
    if length <= _LONG:
        return log_lines.shown(os.pread(handle, length, span.start))
    start, end = _last_state(handle, span)
    head = os.pread(handle, min(end - start, _LONG), start)
    return log_lines.cut(head, whole=end - start)


def _last_state(handle: int, span: Span) -> tuple[int, int]:
    """What is left of a long line once its carriage returns are folded."""
    end = span.end
    position = span.end
    while position > span.start:
        start = max(span.start, position - _BLOCK)
        data = os.pread(handle, position - start, start)
        if position == end:
            kept = len(data.rstrip(b"\r"))
            if not kept:
                end = position = start
                continue
            end = start + kept
            data = data[:kept]
        place = data.rfind(b"\r")
        if place >= 0:
            return start + place + 1, end
        position = start
    return span.start, end
