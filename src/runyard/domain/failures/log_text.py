"""Log lines as they are compared: without colours, prefixes of ranks and clocks, and bounded."""

from __future__ import annotations

import re
from typing import NamedTuple

from runyard.domain.progress.written import clean

LONGEST_HEAD = 3000
LONGEST_TAIL = 1000

_RANK = re.compile(
    r"\[rank ?(\d{1,6})\]: ?|\[default(\d{1,6})\]: ?|\[\d{1,4},(\d{1,6})\]<std(?:err|out)>: ?"
    r"|(?:RANK|Rank|rank)[ =:](\d{1,6}): ",
)
_RAY = re.compile(
    r"\([A-Za-z_][\w.:]{0,80} (?:rank=(\d{1,6}) )?pid=\d{1,9}(?:, ip=[\w.:]{1,64})?\) ?"
)
_GLOG = re.compile(
    r"\[?([IWEF])(\d{1,2})(\d{2}) (\d\d):(\d\d):(\d\d(?:\.\d{1,9})?)"
    r"(?: +\d{1,9})? [\w./\\-]{1,200}:\d{1,7}\] ?"
)
_TENSORFLOW = re.compile(r"([IWEF]) [\w./-]{1,200}\.(?:cc|cpp|cu|h|cuh|py):\d{1,7}\] ?")
_CLOCK = re.compile(
    r"\[?\d{4}-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?\]?:?"
    r"(?: -)? ?"
)
_LEVEL = re.compile(r"\[?(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\]?(?: -|:)? ?")
_WARNING = re.compile(
    r"\b(?:WARNING|DEBUG)\b|(?<!NCCL )\bWARN\b|\b[A-Z]\w{0,40}Warning:|^warning:|: warning:"
    r"|\bRetrying\b|\bretrying in\b|^[WI] (?:tensorflow|external|xla)/"
)
_PASSING = ("I", "W", "WARNING", "WARN", "DEBUG")
# What a line can begin with that is not its own: ranks, clocks, levels, groups of exceptions.
# Most lines of most logs begin with nothing of it, and each expression costs.
_PREFIXED = frozenset("[( 0123456789IWEFRrDC")
_RANKED, _CLOCKED = frozenset("[Rr"), frozenset("[0123456789")
_LETTERED, _LEVELLED = frozenset("IWEF"), frozenset("[DIWECF")
_GROUP = re.compile(r" {2,8}[|+] ")


class Text(NamedTuple):
    """One line of a log. `body` keeps its indent, which tells the lines of a traceback apart;
    `stamp` is its own clock as seconds within the year."""

    number: int
    raw: str
    body: str
    rank: int | None = None
    stamp: float | None = None
    at: float | None = None
    level: str = ""
    packed: bool = False  # one of several that were written as one line

    @property
    def fatal(self) -> bool:
        """What loggers say of what ends the program."""
        return self.level in ("F", "FATAL", "CRITICAL")

    @property
    def error(self) -> bool:
        return self.level in ("E", "ERROR") or self.fatal


def read(number: int, line: str, at: float | None = None) -> Text:
    raw = _bounded(line)
    if raw[:1] not in _PREFIXED:
        return Text(number, raw, raw, at=at)
    rank, rest = _without_rank(raw)
    rest, stamp, level = _without_clock(rest)
    if rank is None and stamp is not None:
        rank, rest = _without_rank(rest)
    group = _GROUP.match(rest)  # lines of an exception group
    if group is not None:
        rest = rest[group.end() :]
    return Text(number, raw.strip(), rest, rank, stamp, at, level)


def warns(text: Text) -> bool:
    """Said in passing: nothing has ended by it yet."""
    return text.level in _PASSING or _WARNING.search(text.body[:400]) is not None


def _bounded(line: str) -> str:
    if len(line) <= LONGEST_HEAD + LONGEST_TAIL and line.isprintable():
        return line.rstrip()
    if len(line) > LONGEST_HEAD + LONGEST_TAIL:
        line = f"{line[:LONGEST_HEAD]} ... {line[-LONGEST_TAIL:]}"
    line = line.rstrip("\r\n")
    line = line[line.rfind("\r") + 1 :]
    indent = len(line) - len(line.lstrip(" \t"))
    return line[:indent].replace("\t", "    ") + clean(line)


def _without_rank(line: str) -> tuple[int | None, str]:
    first = line[:1]
    pattern = _RANK if first in _RANKED else _RAY if first == "(" else None
    found = None if pattern is None else pattern.match(line)
    if found is None:
        return None, line
    number = None if found.lastindex is None else int(found.group(found.lastindex))
    return number, line[found.end() :]


def _without_clock(line: str) -> tuple[str, float | None, str]:
    """The rest, the clock, and the level the line was written with."""
    first, stamp, level = line[:1], None, ""
    if first == "[" or first in _LETTERED:
        found = _GLOG.match(line)
        if found is not None:
            level, *clock = found.groups()
            return line[found.end() :], _seconds(*clock), level
    found = _CLOCK.match(line) if first in _CLOCKED else None
    if found is not None:
        stamp, line = _seconds(*found.groups()), line[found.end() :]
        first = line[:1]
    lettered = _TENSORFLOW.match(line) if first in _LETTERED else None
    if lettered is not None:
        return line[lettered.end() :], stamp, lettered.group(1)
    said = _LEVEL.match(line) if first in _LEVELLED else None
    if said is not None and (stamp is not None or line[said.end() - 1 : said.end()] in ": ]-"):
        level, line = said.group(1), line[said.end() :]
    return line, stamp, level


def _seconds(month: str, day: str, hour: str, minute: str, second: str) -> float:
    days = int(month) * 31 + int(day)
    return ((days * 24 + int(hour)) * 60 + int(minute)) * 60 + float(second.replace(",", "."))
