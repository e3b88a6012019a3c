"""Finds lines in a log in linear time: by plain text, or by a pattern that cannot run away."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from runyard.domain import errors, log_lines
from runyard.logs.log_file import LogFile, Page, text_of
from runyard.logs.log_spans import Span, extents

_CHUNK = 1024 * 1024
_LONGEST_LINE = 8 * 1024 * 1024
_MOST_SECONDS = 5.0
_LONGEST_PATTERN = 200
_LONGEST_MATCHED = 1000  # characters of a line that a pattern looks at
_MOST_OPEN_REPEATS = 2
_MANY = 100  # a repeat beyond this counts as open-ended

Matcher = Callable[[str], bool]


def grep(
    log: LogFile,
    text: str,
    *,
    regex: bool = False,
    ignore_case: bool = False,
    tail: int | None = None,
    first: int = 0,
    limit: int = 1000,
    seconds: float = _MOST_SECONDS,
) -> Page:
    """Lines that hold `text`: the last `tail` of them, or the first `limit` from `first` on."""
    matches = _pattern(text, ignore_case) if regex else _containing(text, ignore_case)
    needle = b"" if regex else _needle(text, ignore_case)
    deadline = time.monotonic() + seconds
    with log.opened() as (handle, size):
        log.index.extend(handle, size)
        start = log.line_offset(first) if first else 0
        chunks = list(_bounds(handle, start, size))
        wanted = limit if tail is None else tail
        found: list[tuple[Span, str]] = []
        complete = True
        for bounds in chunks if tail is None else reversed(chunks):
            hits = list(_hits(handle, bounds, needle, matches, ignore_case))
            found += hits if tail is None else reversed(hits)
            if len(found) >= wanted:
                break
            if time.monotonic() > deadline:
                complete = False
                break
        found = found[:wanted] if tail is None else found[:wanted][::-1]
        numbers = [log.index.before(handle, span.start) for span, _ in found]
        following = numbers[-1] + 1 if numbers and tail is None else None
        lines = [line for _, line in found]
        return Page(lines, size, (), None, following, numbers, complete)


def _bounds(handle: int, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Pieces of about a mebibyte that begin and end with whole lines, gaps left out."""
    for first, stop, is_gap in extents(handle, start, size):
        if is_gap:
            continue
        while first < stop:
            end = min(first + _CHUNK, stop)
            if end < stop:
                end = _line_end(handle, first, end, stop)
            yield first, end
            first = end


def _line_end(handle: int, first: int, end: int, stop: int) -> int:
    while end < min(stop, first + _LONGEST_LINE):
        data = os.pread(handle, _CHUNK, end)
        place = data.find(b"\n")
        if place >= 0:
            return min(end + place + 1, stop)
        end += len(data)
        if not data:
            break
    return min(end, stop)


def _hits(
    handle: int, bounds: tuple[int, int], needle: bytes, matches: Matcher, ignore_case: bool
) -> Iterator[tuple[Span, str]]:
    start, end = bounds
    data = os.pread(handle, end - start, start)
    if ignore_case and needle:
        data = data.lower()  # of ASCII only, so that every byte stays where it is
    place = data.find(needle)
    while 0 <= place < len(data):
        first = data.rfind(b"\n", 0, place) + 1
        last = data.find(b"\n", place)
        last = len(data) if last < 0 else last
        line = data[first:last]
        # What a carriage return wiped out is not there any more.
        if matches(log_lines.folded(line).decode("utf-8", "replace")):
            span = Span(start + first, start + last)
            yield span, text_of(handle, span)
        place = data.find(needle, last + 1)


def _containing(text: str, ignore_case: bool) -> Matcher:
    if not ignore_case:
        return lambda line: text in line
    folded = text.casefold()
    return lambda line: folded in line.casefold()


def _needle(text: str, ignore_case: bool) -> bytes:
    """What a line must hold to be looked at; nothing where capitals are not only ASCII."""
    if not ignore_case:
        return text.encode("utf-8", "replace")
    return text.lower().encode() if text.isascii() else b""


def _pattern(text: str, ignore_case: bool = False) -> Matcher:
    if len(text) > _LONGEST_PATTERN:
        raise _refused(f"it is longer than {_LONGEST_PATTERN} characters")
    try:
        parsed = _parser.parse(text)
        compiled = re.compile(text, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise _refused(str(error)) from None
    if _open_repeats(parsed, inside=False) > _MOST_OPEN_REPEATS:
        raise _refused(f"it has more than {_MOST_OPEN_REPEATS} open-ended repeats")
    return lambda line: compiled.search(line[:_LONGEST_MATCHED]) is not None


def _open_repeats(parsed: Sequence[Any], *, inside: bool) -> int:
    """How many repeats multiply the work; refuses what can multiply it without end."""
    total = 0
    for kind, detail in parsed:
        if kind in (sre.GROUPREF, sre.GROUPREF_EXISTS, sre.ASSERT, sre.ASSERT_NOT):
            raise _refused("back references and look-around are not possible here")
        if kind in _REPEATS:
            _, most, body = detail
            if inside:
                raise _refused("a repeat inside a repeat is not possible here")
            total += int(most > _MANY)
            total += _open_repeats(body, inside=most > 1)
        elif kind is sre.BRANCH:
            if inside:
                raise _refused("a choice inside a repeat is not possible here")
            total += sum(_open_repeats(branch, inside=inside) for branch in detail[1])
        elif kind is sre.SUBPATTERN:
            total += _open_repeats(detail[-1], inside=inside)
    return total


_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def _refused(why: str) -> errors.InvalidRequest:
    field = {"field": "grep", "code": "bad_pattern", "message": why}
    return errors.InvalidRequest(f"The pattern cannot be used: {why}.", fields=[field])
