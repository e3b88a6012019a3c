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
LEASE = "lease"
DEPENDENCY = "dependency"  # what it depends on will not succeed

_ASKED = frozenset({reasons.USER_CANCELLED, reasons.SHUTDOWN, reasons.LEASE_LOST})
_WITH_GRACE = frozenset({reasons.WAITING_FOR_STEP, reasons.WAITING_FOR_SERVICES})
# What a cancelling job says whatever it waits for, so that nothing of the request is lost.
_REQUEST = ("by", "cause", "requested_at", "grace_s", "until", "broken")


def asked(cause: str, by: str, lease_s: float | None = None) -> Reason:
    """Of a job that was cancelled: who asked, or what for."""
    if cause == SHUTDOWN:
        return Reason(reasons.SHUTDOWN)
    if cause == LEASE:
        return Reason(reasons.LEASE_LOST, {"lease_s": lease_s})
    return Reason(reasons.USER_CANCELLED, {"by": by})


def asked_of(job: Job, cause: str, by: str) -> Reason:
    return asked(cause, by, job.spec.lease.length_s if job.spec.lease else None)


def asked_for(job: Job) -> Reason | None:
    """Who asked for the end, also while the job's reason tells what it waits for."""
    if job.reason is None or job.reason.code in _ASKED:
        return job.reason
    if job.reason.params.get("cause") == DEPENDENCY:
        return Reason(reasons.DEPENDENCY_FAILED, dict(job.reason.params.get("broken") or {}))
    return asked_of(job, str(job.reason.params.get("cause")), str(job.reason.params.get("by")))


def waiting(
    cause: str,
    by: str,
    grace_s: float,
    now: float,
    code: str = reasons.WAITING_FOR_STEP,
    **more: Any,
) -> Reason:
    """Of a job that has just been asked to end."""
    request = {"by": by, "cause": cause, "requested_at": now, "grace_s": grace_s}
    return Reason(code, {**request, "until": now + grace_s, **more})


def hurried(reason: Reason | None, now: float) -> Reason | None:
    """The same request after a force-kill: no grace is left of it."""
    if reason is None or "until" not in reason.params:
        return reason
    until = min(float(reason.params["until"]), now)
    return Reason(reason.code, {**reason.params, "until": until})


def as_seen(reason: Reason | None, now: float) -> Reason | None:
    """What a cancelling job waits for at this moment, with what is left of its grace."""
    if reason is None or "until" not in reason.params:
        return reason
    left = max(0.0, float(reason.params["until"]) - now)
    over = reason.code in _WITH_GRACE and left <= 0
    code = reasons.WAITING_FOR_PROCESSES if over else reason.code
    return Reason(code, {**reason.params, "left_s": round(left, 1)})


def requested(reason: Reason | None) -> tuple[Any, Any]:
    """(by, at) of the request a cancelling job tells of."""
    params = {} if reason is None else reason.params
    return params.get("by"), params.get("requested_at")


def say_stuck(tx: Transaction, attempt_id: str, stuck: Sequence[Mapping[str, Any]]) -> None:
    """Name what cannot be killed; until it is gone the job stays cancelling."""
    unit = tx.attempt(attempt_id) or tx.preparation(attempt_id)
    if unit is not None:
        _say(tx, unit.job_id, reasons.STUCK, {"processes": [dict(p) for p in stuck]})


def say_unreachable(tx: Transaction, job_id: int, node: str) -> None:
    """The server that owns its attempt does not answer."""
    _say(tx, job_id, reasons.NODE_UNREACHABLE, {"node": node})


def say_reachable(tx: Transaction, job_id: int) -> None:
    """The server that owns its attempt is back: it waits for what it waited for before."""
    _say(tx, job_id, reasons.WAITING_FOR_STEP, {})


def say_gpu_memory(tx: Transaction, job_id: int, gpus: Sequence[int]) -> None:
    """Its processes are gone; what they held on these GPUs is not back."""
    _say(tx, job_id, reasons.WAITING_FOR_GPU_MEMORY, {"gpus": list(gpus)})


def _say(tx: Transaction, job_id: int, code: str, params: dict[str, Any]) -> None:
    job = tx.job(job_id)
    if job is None or job.status is not JobStatus.CANCELLING:
        return
    if job.reason is not None:
        known = job.reason.params
        params |= {name: known[name] for name in _REQUEST if name in known}
        # Written by an earlier release, whose cancelling jobs told only who had asked.
        params.setdefault("cause", SHUTDOWN if job.reason.code == reasons.SHUTDOWN else "user")
        params.setdefault("by", known.get("by"))
    if job.reason != Reason(code, params):
        tx.update_job(job_id, frozenset({JobStatus.CANCELLING}), reason=Reason(code, params))
