"""New lines of a growing file, by offset. It may be huge, binary, have gaps, or be no file."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from runyard.logs.log_spans import extents

LONGEST_LINE = 65_536
# A named pipe in its place must not hold up the reader.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Line:
    end: int  # the byte after it
    text: str


@dataclass(frozen=True, slots=True)
class Tail:
    lines: list[Line]
    start: int  # where the reading began
    size: int  # of the file
    changed_at: float  # when it was last written, 0 where there is none
    more: bool  # there is more to read now


NOTHING = Tail([], 0, 0, 0.0, False)


class LogTail:
    """`offset`: all before it was given out. Lines end at newlines and at carriage returns; one
    that is too long is dropped and counted."""

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        self.too_long = 0
        self._rest = b""  # begun, without an end yet
        self._in_long_line = False
        self._after_return = False

    def read(self, most: int) -> Tail:
        try:
            handle = os.open(self.path, _FLAGS)
        except OSError:
            return NOTHING
        try:
            return self._read(handle, most)
        except OSError:
            return NOTHING
        finally:
            os.close(handle)

    def rest(self) -> str:
        """What stands after the last end of a line."""
        return self._rest.decode("utf-8", "replace")

    def bar(self) -> str:
        """The same, where it is drawn over a line before it: such a bar is whole."""
        return self.rest() if self._after_return else ""

    def take_rest(self) -> str:
        """Nothing more will be written: the last line needs no end."""
        text = self.rest()
        self.offset += len(self._rest)
        self._rest = b""
        return text

    def skip_to(self, offset: int) -> None:
        """Leave out what is before; the line it falls into is left out as well."""
        self.offset, self._rest, self._in_long_line = offset, b"", offset > 0

    def _read(self, handle: int, most: int) -> Tail:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            return NOTHING
        size = info.st_size
        if size < self.offset + len(self._rest):  # it was written anew
            self.offset, self._rest, self._in_long_line = 0, b"", False
        start = position = self.offset + len(self._rest)
        for first, stop, is_gap in extents(handle, position, size):
            if not is_gap:
                position = first
                data = os.pread(handle, min(most, stop - first), first)
                break
            self.offset, self._rest = stop, b""
        else:
            return Tail([], start, size, info.st_mtime, False)
        lines = self._split(data)
        more = bool(data) and position + len(data) < size
        return Tail(lines, position, size, info.st_mtime, more)

    def _split(self, data: bytes) -> list[Line]:
        whole = self._rest + data
        end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
        lines: list[Line] = []
        if end:
            self._after_return = whole[end - 1 : end] == b"\r"
            place = self.offset
            for text in whole[: end - 1].replace(b"\r", b"\n").split(b"\n"):
                place += len(text) + 1
                if self._in_long_line or len(text) > LONGEST_LINE:
                    self.too_long += not self._in_long_line
                    self._in_long_line = False
                elif text:
                    lines.append(Line(place, text.decode("utf-8", "replace")))
        self.offset += end
        self._rest = whole[end:]
        if self._in_long_line or len(self._rest) > LONGEST_LINE:
            self.too_long += not self._in_long_line
            self._in_long_line = True
            self.offset += len(self._rest)
            self._rest = b""
        return lines


def lines_between(path: str, start: int, end: int) -> list[str]:
    """Whole lines inside a part of a file; none where it cannot be read."""
    tail = LogTail(path)
    tail.skip_to(start)
    return [line.text for line in tail.read(max(0, end - start)).lines]
