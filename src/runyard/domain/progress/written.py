"""Numbers, durations and `name: number` pairs as log lines write them. Every pattern is bounded,
so that no line costs more than its length times a constant."""

from __future__ import annotations

import math
import re

LONGEST_LINE = 8192

NUMBER = (
    r"[-+]?(?:(?:\d{1,3}(?:,\d{3}){1,5}(?![\d,])|\d{1,40})(?:\.\d{0,40})?|\.\d{1,40})"
    r"(?:[eE][-+]?\d{1,4})?|[-+]?(?:[nN]a[nN]|NAN|[iI]nf(?:inity)?|INF)(?![A-Za-z])"
)
_FIRST_WORDS = (
    "train|training|val|valid|validation|test|eval|avg|average|mean|running|lm|learning|grad"
    "|gradient|batch|epoch|step|total|loss|global"
)
PAIR = re.compile(
    rf"(?<![\w.])((?:(?:{_FIRST_WORDS})[ _/])?[A-Za-z][\w./@-]{{0,63}}?)"
    rf"(?:\s{{0,3}}[:=]\s{{0,12}}|\s{{1,3}})({NUMBER})(?![\w:/]|\.\d)(%?)",
    re.IGNORECASE,
)
_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[()][0-9A-B])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CLOCK = re.compile(r"(?:(\d{1,4}) days?, )?(?:(\d{1,5}):)?(\d{1,4}):(\d{1,2})(?:\.\d{1,6})?")


def clean(line: str) -> str:
    """Without colours, cursor moves and control characters, and cut where it is absurdly long."""
    line = line[:LONGEST_LINE]
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if not line.isprintable():
        line = _CONTROL.sub("", line)
    return line.strip()


def number(text: str) -> float | None:
    text = text.strip().strip("'\"").replace(",", "")
    if len(text) > 64:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def count(text: str) -> int | None:
    """A whole number that is no more than a counter can be."""
    value = number(text)
    if value is None or not math.isfinite(value) or not 0 <= value < 1e15:
        return None
    return int(value)


def duration(text: str) -> float | None:
    """`01:23`, `1:02:03` or `2 days, 1:02:03` in seconds."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def pairs(text: str, *, skip: frozenset[str] = frozenset()) -> dict[str, float]:
    """Names and numbers of a line, the last of each name; `skip` are names in lower case."""
    found: dict[str, float] = {}
    for match in PAIR.finditer(text):
        name, value = match.group(1), number(match.group(2))
        if value is not None and name.lower() not in skip:
            found[name] = value / 100 if match.group(3) and "acc" in name.lower() else value
    return found
