"""What went wrong with a job so far, what was changed for it, and what happens next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.domain import events
from runyard.domain.command import Places
from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt, Job
from runyard.domain.preparation import Preparation
from runyard.domain.recovery.policy import Strategy
from runyard.domain.states import ENDED, JobStatus
from runyard.engine.launch import starts
from runyard.engine.recover import reproducing
from runyard.stores.base import Reader

_MOST = 10  # failures that are told
_PAGE = 1000  # of events


@dataclass(frozen=True, slots=True)
class Known:
    """What is kept of a job besides itself; `places` are where its attempts write."""

    attempts: Sequence[Attempt]
    events: Sequence[StoredEvent]
    preparations: Sequence[Preparation]
    places: Places


def read(reader: Reader, job: Job, places: Places) -> Known:
    found: list[StoredEvent] = []
    while True:
        page = reader.events(job.id, after=found[-1].id if found else 0, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            break
    attempts, preparations = reader.attempts(job.id), reader.preparations(job.id)
    return Known(attempts, found, preparations, places)


def of(job: Job, known: Known) -> dict[str, Any]:
    """For the answer to "why": the newest diagnosis and plan, all changes, and the way there."""
    attempts = known.attempts
    failed = [one for one in attempts if one.diagnosis or one.plan]
    last = failed[-1] if failed else None
    chosen = _chosen(known.events)
    number = last.number if last is not None else max(job.attempt_number, 1)
    given = chosen.get(job.attempt_id(number))
    return {
        "diagnosis": None if last is None else last.diagnosis,
        "plan": None if last is None else last.plan,
        "changes": changes_so_far(attempts),
        "failures": [
            _failure(one, chosen.get(job.attempt_id(one.number + 1))) for one in failed[-_MOST:]
        ],
        "next": _next(job, last),
        "reproduce": reproducing.of(
            job, attempts, number, known.places, None if given is None else given["path"]
        ),
        "downloads": _taken_up_again(known.preparations),
    }


def _chosen(told: Sequence[StoredEvent]) -> dict[str, dict[str, Any]]:
    """By attempt: the checkpoint it went on from, and those passed over for it."""
    return {
        one.event.attempt_id: {
            "path": str(one.event.params["path"]),
            "step": one.event.params.get("step"),
            "passed_over": list(one.event.params.get("passed_over", ())),
        }
        for one in told
        if one.event.code == events.CHECKPOINT_CHOSEN and one.event.attempt_id is not None
    }


def _taken_up_again(preparations: Sequence[Preparation]) -> list[dict[str, Any]]:
    """Downloads that went on where they had been cut off."""
    items = [
        item
        for one in preparations
        if one.outcome is not None
        for item in one.outcome.get("items", ())
    ]
    return [
        {name: item.get(name) for name in ("name", "uri", "bytes", "resumed_bytes")}
        for item in items
        if item.get("resumed_bytes")
    ]


def changes_before(attempt: Attempt, attempts: Sequence[Attempt]) -> list[Mapping[str, Any]]:
    """What this attempt did differently from the one before it."""
    led = [one for one in attempts if one.number < attempt.number and one.plan]
    if not led or led[-1].number != attempt.number - 1:
        return []
    return list((led[-1].plan or {}).get("changes", ()))


def changes_so_far(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Against what was submitted, as the newest plan has it; the first value with the last."""
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for one in attempts:
        planned = one.plan or {}
        if planned.get("reason", {}).get("code") == starts.ASKED_FRESH:
            made.clear()
        for change in planned.get("changes", ()):
            key = (change["kind"], change["name"])
            before = made[key]["before"] if key in made else change["before"]
            made[key] = {**change, "before": before}
    return [change for change in made.values() if change["before"] != change["after"]]


def _failure(attempt: Attempt, resumed: dict[str, Any] | None) -> dict[str, Any]:
    """`resumed` is the checkpoint that the attempt after it went on from."""
    known, planned = attempt.diagnosis or {}, attempt.plan or {}
    return {
        "attempt": attempt.number,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "cause": attempt.cause,
        "failure_type": known.get("failure_type"),
        "category": known.get("category"),
        "confidence": known.get("confidence"),
        "explanation": known.get("explanation"),
        "root": known.get("root"),
        "strategy": planned.get("strategy"),
        "plan": planned.get("reason"),
        "changes": planned.get("changes", []),
        "delay_s": planned.get("delay_s"),
        "charged": planned.get("charged"),
        "checkpoint": resumed,
    }


def _next(job: Job, last: Attempt | None) -> dict[str, Any]:
    """What happens by itself, or what a person can do."""
    planned = {} if last is None else last.plan or {}
    if job.status is JobStatus.RETRYING:
        told = {"at": job.not_before, "strategy": planned.get("strategy")}
        return {"code": "tried_again", "params": {**told, "attempt": job.attempt_number + 1}}
    if job.status not in ENDED:
        return {"code": job.status.value, "params": {}}
    if job.status is JobStatus.COMPLETED and planned:
        return {"code": "repaired", "params": {"attempts": job.attempt_number}}
    if job.status is JobStatus.FAILED and planned.get("strategy") == Strategy.GIVE_UP:
        return {"code": "given_up", "params": planned.get("reason") or {}}
    return {"code": "nothing", "params": {}}
