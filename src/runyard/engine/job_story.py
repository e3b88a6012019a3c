"""What happened to a job and what the system did, each with the line of the log that proves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.domain import events
from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt

_ENDS = frozenset({events.JOB_FAILED, events.JOB_RETRYING})


@dataclass(frozen=True, slots=True)
class Line:
    """Of the log of this attempt and rank, counted from 1; 0 is a line of the kernel's log."""

    attempt: int
    rank: int
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    event: StoredEvent
    attempt: Attempt | None  # the one it tells of
    cause: Mapping[str, Any] | None = None  # {code, params}: what went wrong
    action: Mapping[str, Any] | None = None  # {code, params}: what the system did about it
    changes: Sequence[Mapping[str, Any]] = ()
    lines: tuple[Line, ...] = ()


def chapters(told: Sequence[StoredEvent], attempts: Sequence[Attempt]) -> list[Chapter]:
    by_id = {attempt.attempt_id: attempt for attempt in attempts}
    return [_chapter(one, by_id.get(one.event.attempt_id or "")) for one in told]


def _chapter(one: StoredEvent, attempt: Attempt | None) -> Chapter:
    if attempt is None or one.event.code not in _ENDS:
        return Chapter(one, attempt)
    known, planned = attempt.diagnosis or {}, attempt.plan or {}
    reason = planned.get("reason")
    action = None
    if planned:
        told = {"strategy": planned.get("strategy"), "delay_s": planned.get("delay_s")}
        action = {"code": planned.get("strategy"), "params": {**told, "reason": reason}}
    return Chapter(
        one,
        attempt,
        known.get("explanation"),
        action,
        tuple(planned.get("changes", ())),
        tuple(_line(attempt, line) for line in known.get("proof", ())),
    )


def _line(attempt: Attempt, line: Mapping[str, Any]) -> Line:
    return Line(attempt.number, int(line["rank"]), int(line["number"]), str(line["text"]))
