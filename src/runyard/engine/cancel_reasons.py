"""Why a job is cancelling or was cancelled: who asked, and what it still waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.domain import reasons
from runyard.domain.job import Job
from runyard.domain.reasons import Reason
from runyard.domain.states import JobStatus
from runyard.stores.base import Transaction

SHUTDOWN = "shutdown"


def asked(cause: str, by: str) -> Reason:
    if cause == SHUTDOWN:
        return Reason(reasons.SHUTDOWN)
    return Reason(reasons.USER_CANCELLED, {"by": by})


def asked_for(job: Job) -> Reason | None:
    """Who asked for the end, also while the job's reason tells what it waits for."""
    if job.reason is None or job.reason.code in (reasons.USER_CANCELLED, reasons.SHUTDOWN):
        return job.reason
    return asked(str(job.reason.params.get("cause")), str(job.reason.params.get("by")))


def say_stuck(tx: Transaction, attempt_id: str, stuck: Sequence[Mapping[str, Any]]) -> None:
    """Name what cannot be killed; until it is gone the job stays cancelling."""
    attempt = tx.attempt(attempt_id)
    if attempt is not None:
        _say(tx, attempt.job_id, reasons.STUCK, {"processes": [dict(p) for p in stuck]})


def say_unreachable(tx: Transaction, job_id: int, node: str) -> None:
    """The server that owns its attempt does not answer."""
    _say(tx, job_id, reasons.NODE_UNREACHABLE, {"node": node})


def _say(tx: Transaction, job_id: int, code: str, params: dict[str, Any]) -> None:
    job = tx.job(job_id)
    if job is None or job.status is not JobStatus.CANCELLING:
        return
    request = asked_for(job)
    if request is not None:
        params["cause"] = SHUTDOWN if request.code == reasons.SHUTDOWN else "user"
        params["by"] = request.params.get("by")
    if job.reason != Reason(code, params):
        tx.update_job(job_id, frozenset({JobStatus.CANCELLING}), reason=Reason(code, params))
