"""What went wrong with a job so far, what was changed for it, and what happens next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.domain import secrets
from runyard.domain.job import Attempt, Job
from runyard.domain.recovery.policy import Strategy
from runyard.domain.states import ENDED, JobStatus
from runyard.engine import starts

_MOST = 10  # failures that are told


def of(job: Job, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """For the answer to "why": the newest diagnosis and plan, all changes, and the way there."""
    failed = [one for one in attempts if one.diagnosis or one.plan]
    last = failed[-1] if failed else None
    return {
        "diagnosis": None if last is None else last.diagnosis,
        "plan": None if last is None else last.plan,
        "changes": changes_so_far(attempts),
        "failures": [_failure(one) for one in failed[-_MOST:]],
        "next": _next(job, last),
        "reproduce": _reproduce(job, attempts, last),
    }


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


def _failure(attempt: Attempt) -> dict[str, Any]:
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


def _reproduce(job: Job, attempts: Sequence[Attempt], last: Attempt | None) -> dict[str, Any]:
    """The command as the attempt ran it that failed last, or as the newest ran it."""
    number = last.number if last is not None else max(job.attempt_number, 1)
    made = starts.ran_with(attempts, number)
    spec = starts.Start(made).spec(job.spec)
    return {
        "attempt": number,
        "command": spec.command,
        "params": dict(spec.params),
        "working_dir": spec.working_dir,
        "env": secrets.mask(made.env),
        "batch_scale": made.batch_scale,
    }
