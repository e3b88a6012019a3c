"""A known text of a failure: what it means, and how a line is compared with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from runyard.domain.failures.categories import Category


class Kind(StrEnum):
    ROOT = "root"  # may be the cause
    CASCADE = "cascade"  # follows from something else
    TEARDOWN = "teardown"  # said while everything is being ended
    ADVICE = "advice"  # help or a warning beside it


@dataclass(frozen=True, slots=True)
class Signature:
    """`text` is found literally; several parts in this order. `pattern`, if any, must match too.
    A `loose` text also appears in lines that mean no harm, and counts fully only where an
    exception or an error is said. `variant` tells special cases of a category apart."""

    category: Category
    text: str | tuple[str, ...]
    sample: str
    kind: Kind = Kind.ROOT
    confidence: float = 0.9
    pattern: re.Pattern[str] | None = None
    starts: bool = False  # the text begins the line
    loose: bool = False
    variant: str = ""
    general: bool = False  # a whole class of errors: closer words beside it come first
    one_of: tuple[str, ...] = ()  # one of these is in the line, seldomer than the text

    @property
    def cues(self) -> tuple[str, ...]:
        """Words without one of which no line can match."""
        return self.one_of or self.parts[:1]

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.text,) if isinstance(self.text, str) else self.text

    def matches(self, line: str) -> bool:
        parts = self.parts
        if self.starts and not line.startswith(parts[0]):
            return False
        at = 0
        for part in parts:
            at = line.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return self.pattern is None or self.pattern.search(line) is not None


def cascade(text: str | tuple[str, ...], sample: str, confidence: float = 0.9) -> Signature:
    return Signature(Category.UNKNOWN, text, sample, Kind.CASCADE, confidence)


def teardown(text: str | tuple[str, ...], sample: str, confidence: float = 0.9) -> Signature:
    return Signature(Category.UNKNOWN, text, sample, Kind.TEARDOWN, confidence)


def advice(text: str | tuple[str, ...], sample: str, confidence: float = 0.9) -> Signature:
    return Signature(Category.UNKNOWN, text, sample, Kind.ADVICE, confidence)
