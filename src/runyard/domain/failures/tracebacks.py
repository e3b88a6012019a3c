"""Follows Python's tracebacks through the lines of one rank: frames, exceptions, and which led to
which."""

from __future__ import annotations

import re
from collections import deque

MOST_NOISE = 20  # lines of others between the lines of one traceback
MOST_FRAMES = 48  # lines of the end of a traceback: who raised it

HEADER = "Traceback (most recent call last)"
_IGNORED = "Exception ignored in"
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_BOX = ("│", "╭", "╰", "┃")  # tracebacks drawn as a box hold source code
# A line with none of these changes nothing outside of a traceback.
CUES = (HEADER, _IGNORED, 'File "', *_CHAINED, *_BOX)
_FROM_PARENT = "pickle.load(from_parent)"
_FILE = re.compile(r'>?\s{0,40}File "[^"]{1,500}", line \d{1,9}')
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]{0,200}(?:\[[\w, ]{1,80}\])?(?:\([\w., ]{1,80}\))?(?::|$)")


def is_header(line: str) -> bool:
    """Nothing is said after it: else it is the beginning of something quoted."""
    _, found, rest = line.partition(HEADER)
    return bool(found) and not any(letter.isalpha() for letter in rest)


class Stream:
    """The tracebacks of one rank."""

    def __init__(self, first_chain: int) -> None:
        self.chain = first_chain
        self.open = False  # within an exception, its message or what it led to
        self.ignored = False  # Python tells of it and goes on
        self.chained = False  # led to by the one before
        self.frames: deque[str] = deque(maxlen=MOST_FRAMES)
        self._inside = False
        self._noise = 0
        self._chained = False
        self._since = 0  # lines since the last exception line
        self._indent = 0  # of the whole traceback
        self._announced = False  # that the next one is ignored
        self._words = False  # something else was said since the last exception line

    @property
    def indented(self) -> bool:
        """The whole of it: a text that the program shows."""
        return self._indent >= 2

    @property
    def of_child(self) -> bool:
        """Of a process that was just reading from its parent what it is to do."""
        return any(_FROM_PARENT in frame for frame in self.frames)

    @property
    def idle(self) -> bool:
        """An ordinary line changes nothing."""
        return not (self._inside or self.open or self._chained or self._announced)

    def place(self, body: str) -> str:
        """frame, exception or other."""
        stripped = body.strip()
        if is_header(stripped):
            self._begin()
            self._indent = len(body) - len(body.lstrip())
            return "frame"
        if stripped.startswith(_BOX):
            return "frame"
        if stripped in _CHAINED:
            self._chained = True
            return "frame"
        if stripped.startswith(_IGNORED):
            self._announced = True
            return "frame"
        return self._inner(body, stripped) if self._inside else self._outer(body, stripped)

    def _outer(self, body: str, stripped: str) -> str:
        if _FILE.match(body):
            self._begin()
            self.frames.append(stripped)
            return "frame"
        self._since += 1
        self._words = self._words or stripped[:1].isalnum()
        self._announced = False
        if self.open and self._since > 4 and not self._chained:
            self.open = False
        return "other"

    def _inner(self, body: str, stripped: str) -> str:
        # Behind the prefix of a logger one space is no indent.
        indent = len(body) - len(body.lstrip()) - self._indent
        if not stripped or indent >= 2 or _FILE.match(body):
            self.frames.append(stripped)
            return "frame"
        if _EXCEPTION.match(stripped):
            self._inside, self.open, self._since, self._noise = False, True, 0, 0
            self._words = False
            return "exception"
        self._noise += 1
        if self._noise > MOST_NOISE:
            self._inside = False
        return "other"

    def _begin(self) -> None:
        # A traceback inside the message of another (of a worker) belongs to it.
        goes_on = self._chained or (self.open and self._since <= 1 and not self._words)
        self.chained = goes_on or self._inside
        if not self.chained:
            self.chain += 1
        self.ignored, self._announced = self._announced, False
        self._inside, self._chained, self._noise, self._indent = True, False, 0, 0
        self.frames.clear()
