"""What happened to a job and what the system did, each with the line of the log that proves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runyard.domain import events
from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt
from runyard.domain.monitoring.alert import Alert

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
    found: Mapping[str, Any] | None = None  # of an alert: what was found


def chapters(
    told: Sequence[StoredEvent], attempts: Sequence[Attempt], alerts: Mapping[int, Alert]
) -> list[Chapter]:
    """`alerts` are those that the events tell of, as far as they are still known."""
    by_id = {attempt.attempt_id: attempt for attempt in attempts}
    made = [_chapter(one, by_id.get(one.event.attempt_id or "")) for one in told]
    return [_with_alert(one, alerts) for one in made]


def alerts_of(told: Sequence[StoredEvent]) -> set[int]:
    """The alerts that these events tell of."""
    found = (one.event.params.get("alert") for one in told)
    return {alert for alert in found if isinstance(alert, int)}


def _with_alert(chapter: Chapter, alerts: Mapping[int, Alert]) -> Chapter:
    alert = alerts.get(chapter.event.event.params.get("alert", -1))
    return chapter if alert is None else replace(chapter, found=alert.params)


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
