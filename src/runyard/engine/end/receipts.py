"""Receipts: what an end gave back, in the words of the contract."""

from __future__ import annotations

from typing import Any

from runyard.domain import states
from runyard.domain.job import Attempt, Job
from runyard.domain.preparation import Preparation
from runyard.domain.states import JobStatus, Stage
from runyard.engine.cancel import cancel_reasons
from runyard.executors.base import End
from runyard.stores.base import Reader


def of_attempt(attempt: Attempt, job: Job, end: End, now: float) -> dict[str, Any]:
    """`job` is as it was before the end: its stage is that at which the end was asked for."""
    held = {
        "gpus": end.receipt.get("gpus", [{"index": grant.index} for grant in attempt.gpus]),
        "ports": list(attempt.ports),
    }
    return _of_unit(attempt.attempt_id, job.stage or attempt.stage, job, end, now) | held


def of_preparation(found: Preparation, job: Job, end: End, now: float) -> dict[str, Any]:
    """It held neither GPU nor port."""
    return _of_unit(found.preparation_id, found.stage, job, end, now)


def _of_unit(name: str, stage: Stage, job: Job, end: End, now: float) -> dict[str, Any]:
    found = end.receipt
    by, at = _request(job, end)
    seconds = found.get("seconds")
    if at is not None and not found.get("stop"):
        seconds = now - at  # asked for when the main process had already ended
    return {
        "attempt_id": name,
        "requested_by": by,
        "requested_at": at,
        "stage": stage.value,
        "signals": found.get("signals", []),
        "processes_ended": found.get("processes_ended", 0),
        "proof": found.get("proof"),
        # Nothing lives at an end; these took longer than a kill should.
        "stuck": found.get("was_stuck") or found.get("stuck") or [],
        "gpus": [],
        "ports": [],
        "shm_bytes": found.get("shm_bytes", 0),
        "temp_removed": found.get("temp_removed", False),
        "services": found.get("services", []),
        **({"service_failure": failed} if (failed := found.get("service_failure")) else {}),
        **{name: found[name] for name in ("rank", "ranks") if name in found},
        "seconds": round(max(0.0, seconds or 0.0), 6),
        "ended_at": end.ended_at,
        "by": end.by,
    }


def newest(reader: Reader, job: Job) -> dict[str, Any] | None:
    """Of a job that goes on: of its last attempt that ended. Of one that has ended: of the attempt
    or preparation that it ended with, else that it held nothing when somebody ended it."""
    ended = [one for one in reader.attempts(job.id) if one.receipt is not None]
    if job.status not in states.ENDED:
        return dict(ended[-1].receipt or {}) if ended else None
    if ended and ended[-1].ended_at == job.completed_at:
        return dict(ended[-1].receipt or {})
    prepared = [one for one in reader.preparations(job.id) if one.receipt is not None]
    if prepared and (job.status is JobStatus.FAILED or prepared[-1].ended_at == job.completed_at):
        return dict(prepared[-1].receipt or {})
    return of_nothing(job)


def of_nothing(job: Job) -> dict[str, Any]:
    """Of a job that ended while it held nothing."""
    cancelled = job.status is JobStatus.CANCELLED
    by = job.reason.params.get("by") if job.reason else None
    if cancelled and by is None:
        lost = job.reason is not None and job.reason.code == "lease_lost"
        by = cancel_reasons.LEASE if lost else "scheduler"
    return {
        "attempt_id": None,
        "requested_by": by,
        "requested_at": job.completed_at if cancelled else None,
        "stage": None,
        "signals": [],
        "processes_ended": 0,
        "proof": "between_attempts" if job.attempt_number else "never_started",
        "stuck": [],
        "gpus": [],
        "ports": [],
        "shm_bytes": 0,
        "temp_removed": False,
        "services": [],
        "seconds": 0.0,
        "ended_at": job.completed_at,
        "by": "server",
    }


def _request(job: Job, end: End) -> tuple[Any, Any]:
    """(by, at) of who asked; the job knows when its supervisor never heard of it."""
    asked = end.receipt.get("stop")
    if asked:
        return asked.get("requested_by"), asked.get("requested_at")
    if job.status is JobStatus.CANCELLING:
        return cancel_reasons.requested(job.reason)
    return None, None
