"""Which of the lines that may be the cause is it: the earliest across all ranks that training did
not survive, and that is no echo of another rank's end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runyard.domain.failures.categories import Category
from runyard.domain.failures.evidence import RankLog
from runyard.domain.failures.log_text import Text
from runyard.domain.failures.observation import SAID, Observation
from runyard.domain.failures.signature import Kind
from runyard.domain.failures.signatures import host_memory, processes
from runyard.domain.failures.survival import Survival

# Often said by those who only lost their partner, or while being ended: others come first.
_SOFT = frozenset(
    {
        Category.COMM_HANG,
        Category.COMM_NET,
        Category.RENDEZVOUS,
        Category.EXTERNAL_STOP,
        Category.UNKNOWN_KILL,
    }
)
_PASSING = frozenset({Category.NETWORK, Category.RATE_LIMIT, Category.STORAGE})
_SHORT = frozenset(
    {
        Category.GPU_OOM,
        Category.HOST_OOM,
        Category.DISK_FULL,
        Category.SHM,
        Category.FD_LIMIT,
        Category.PORT_IN_USE,
        Category.CKPT_CORRUPT,
        Category.PARTIAL_DOWNLOAD,
    }
)
_OF_THE_PROGRAM = frozenset(
    {Category.CODE, Category.CONFIG, Category.DATA, Category.IMPORT, Category.CODE_DATA}
)
# Surroundings, hardware, losses and somebody's stop come before the exceptions they lead to.
_LEADS_ON = frozenset(
    {
        Category.ENV,
        Category.HOST_DRIVER,
        Category.GPU_HW,
        Category.NAN,
        Category.TIME_LIMIT,
        Category.PREEMPTED,
        Category.EXTERNAL_STOP,
    }
)
NEAR = 12  # lines: still the same message
CLEAR = 0.85  # sure enough to be shown as the cause, though a later line is surer

_FIRST_RANK = re.compile(r"failed \(exitcode: -?\d{1,5}\) local_rank: (\d{1,6})")
# Says that something failed, not what: what was told of before it may be why.
_VAGUE = re.compile(
    r"(?i)\bfailed to (?:load|start|initiali[sz]e|launch|create)\b|\binitiali[sz]ation failed"
    r"|\bsee .{0,40}\b(?:above|logs?)\b|\b(?:training|job|task|run|worker|engine|save|command)"
    r" (?:has )?(?:failed|died|crashed)\b|\bworker\b.{0,80}\bexited unexpectedly\b"
)
Logs = Sequence[tuple[RankLog, Sequence[Text]]]


def is_soft(one: Observation) -> bool:
    return one.category in _SOFT


def interrupt(seen: Iterable[Observation]) -> Observation | None:
    """Where somebody's interrupt is first told of."""
    return next((one for one in seen if one.variant == processes.INTERRUPTED), None)


def follows(one: Observation, stop: Observation) -> bool:
    """What is said after an interrupt, in the same log, comes from being ended."""
    return one.log_rank == stop.log_rank and one.order >= stop.order


def choose(seen: Sequence[Observation], logs: Logs) -> Observation | None:
    found = [one for one in seen if one.kind is Kind.ROOT]
    survival = {log.rank: Survival(texts) for log, texts in logs}
    lasting = [
        one
        for one in found
        if one.log_rank not in survival or not survival[one.log_rank].survived(one)
    ]
    strong = _telling([one for one in lasting if one.strong], lasting)
    hard = [one for one in strong if not is_soft(one)]
    for group in (hard, strong):
        if group:
            first = _clearest(_earliest(group, seen, logs), group)
            first = _uncaught(_whose_memory(first, group), group)
            return _ending(first, group, survival.get(first.log_rank))
    # Of what is only half sure, an exception nobody caught comes before words in passing.
    weak = [one for one in lasting if not one.strong]
    uncaught = [one for one in weak if one.exception]
    rest = uncaught or weak[-1:]
    return _earliest(rest, seen, logs) if rest else None


def _telling(
    strong: Sequence[Observation], lasting: Sequence[Observation]
) -> Sequence[Observation]:
    """Without exceptions that only say that something failed, where a line before it said what
    (if it is the same, the exception is the surer of both)."""
    said = [one for one in lasting if one.confidence >= SAID and not _vague(one)]
    return [one for one in strong if not (_vague(one) and _told_before(one, said))]


def _told_before(one: Observation, said: Iterable[Observation]) -> bool:
    return any(_before(other, one) and other.category is not one.category for other in said)


def _vague(one: Observation) -> bool:
    return one.exception and _VAGUE.search(one.text.body[:300]) is not None


def _before(one: Observation, other: Observation) -> bool:
    return one.log_rank == other.log_rank and one.order < other.order


def _whose_memory(first: Observation, group: Iterable[Observation]) -> Observation:
    """Some say first that memory was short, and some lines below of which kind."""
    if first.category is not Category.HOST_OOM or not first.exception:
        return first
    near = (
        one
        for one in group
        if one.category is Category.GPU_OOM and 0 < one.order - first.order <= NEAR
    )
    return next(near, first)


def _uncaught(first: Observation, group: Sequence[Observation]) -> Observation:
    """An exception that nobody caught ends the program: what was only told of before it was
    not the end."""
    if first.exception or first.category in _LEADS_ON or first.variant == host_memory.CONFIRMED:
        return first
    later = [one for one in group if one.exception and _before(first, one) and not _vague(one)]
    return _clearest(min(later, key=lambda one: one.order), later) if later else first


def _ending(
    first: Observation, group: Iterable[Observation], survival: Survival | None
) -> Observation:
    """What passes by itself is often only told of, and what is short can be made do with: an
    error of the program that nobody caught after it, and that it did not lead to, ended it."""
    if first.category not in _PASSING | _SHORT or survival is None:
        return first
    later = (
        one
        for one in group
        if one.exception
        and one.category in _OF_THE_PROGRAM
        and (one.log_rank, one.text.rank) == (first.log_rank, first.text.rank)
        and one.order > first.order
        and (one.chain != first.chain or first.chain < 0)
        and (first.category in _PASSING or survival.trained_between(first, one))
    )
    return next(later, first)


def _clearest(first: Observation, group: Iterable[Observation]) -> Observation:
    """Within exceptions that led to each other: the first clear line of what the surest of them
    says (a hub answers 401 also for what does not exist)."""
    if first.chain < 0:
        return first
    chain = [
        one
        for one in group
        if (one.chain, one.log_rank, one.text.rank)
        == (first.chain, first.log_rank, first.text.rank)
    ]
    surest = max(chain, key=lambda one: one.confidence)
    clear = (one for one in chain if one.confidence >= CLEAR and one.category is surest.category)
    return next(clear, surest)


def _earliest(
    group: Sequence[Observation], seen: Sequence[Observation], logs: Logs
) -> Observation:
    ranks = {one.log_rank for one in group}
    if len(ranks) == 1:
        return min(group, key=lambda one: one.order)
    ended = {log.rank: log.ended_at for log, _ in logs}
    firsts = [
        min((one for one in group if one.log_rank == rank), key=lambda one: one.order)
        for rank in sorted(ranks)
    ]
    by_clock = [
        one.text.at if one.text.at is not None else ended.get(one.log_rank) for one in firsts
    ]
    by_stamp = [one.text.stamp for one in firsts]
    for times in (by_clock, by_stamp):
        known = [time for time in times if time is not None]
        if len(known) == len(firsts):
            return firsts[times.index(min(known))]
    told = _told_first(seen)
    for one in firsts:
        if one.log_rank == told:
            return one
    return max(firsts, key=lambda one: (one.confidence, -one.log_rank))


def _told_first(seen: Iterable[Observation]) -> int | None:
    """The rank that a launcher saw fail first."""
    for one in seen:
        found = _FIRST_RANK.search(one.text.body) if one.kind is Kind.CASCADE else None
        if found is not None:
            return int(found.group(1))
    return None
