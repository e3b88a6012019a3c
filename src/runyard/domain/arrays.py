"""Job arrays as people write them: `0-15%4` is sixteen elements, four at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runyard.domain import errors

MAX_ELEMENTS = 10_000
MAX_INDEX = 1_000_000_000

_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """`limit` is how many may run at once; 0 is no limit."""

    indexes: tuple[int, ...]
    limit: int = 0


def parse_array(text: str) -> ArraySpec:
    """`0-15`, `0-15%4`, `1,3,5-9`, `0-100:10`; each index counts once, in rising order."""
    body, percent, limit_text = text.strip().partition("%")
    limit = 0
    if percent:
        if not (limit_text.isascii() and limit_text.isdigit()) or int(limit_text) == 0:
            raise _wrong(text, "after % must come how many may run at once, for example 0-15%4")
        limit = int(limit_text)
    indexes: set[int] = set()
    for part in body.split(","):
        indexes.update(_range(text, part.strip()))
        if len(indexes) > MAX_ELEMENTS:
            raise _wrong(text, f"an array has at most {MAX_ELEMENTS} elements")
    return ArraySpec(tuple(sorted(indexes)), limit)


def _range(text: str, part: str) -> range:
    found = _RANGE.fullmatch(part)
    if found is None:
        raise _wrong(text, f"'{part}' is neither an index nor a range such as 0-15")
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    step = 1 if found[3] is None else int(found[3])
    if step == 0:
        raise _wrong(text, "the step of a range must be at least 1")
    if last < first:
        raise _wrong(text, f"the range {part} ends before it begins")
    if last > MAX_INDEX:
        raise _wrong(text, f"an index is at most {MAX_INDEX}")
    if (last - first) // step >= MAX_ELEMENTS:
        raise _wrong(text, f"an array has at most {MAX_ELEMENTS} elements")
    return range(first, last + 1, step)


def _wrong(text: str, why: str) -> errors.BadRequest:
    return errors.BadRequest(f"'{text}' is not a job array: {why}.", field="array", value=text)
