"""Reads the log of an attempt: it may be huge, growing, binary, and have a gap in its middle."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from runyard.domain import log_lines
from runyard.logs.log_index import LineIndex
from runyard.logs.log_spans import Gap, Piece, Span, extents, forwards, is_dropped, last_lines

_BLOCK = 256 * 1024
_LONG = 64 * 1024  # a line longer than this is not read whole
MOST_TEXT = 8 * 1024 * 1024  # characters in one answer


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
            found = last_lines(handle, size, count)
            return _page(handle, size, found, newest_matter=True)

    def tail_offset(self, count: int) -> int:
        """The byte where the last `count` lines begin."""
        with self.opened() as (handle, size):
            spans = [piece for piece in last_lines(handle, size, count) if isinstance(piece, Span)]
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
            for piece in forwards(handle, start, size):
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
        """The bytes as they were written, up to the size the file has now. A gap comes whole, with
        the part in which it begins: whoever reads part by part is told of it once."""
        with self.opened() as (handle, size):
            end = size if length is None else min(size, offset + length)
            for start, stop, is_gap in extents(handle, offset, size):
                if start >= end:
                    return
                if is_gap:
                    if start == 0 or not is_dropped(handle, start - 1):
                        yield Gap(start, stop)
                    continue
                stop = min(stop, end)
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
