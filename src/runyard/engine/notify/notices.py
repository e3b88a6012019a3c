"""What the people outside are told: the body of each notification, the same for every receiver."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.alert import Alert

_JOB_PATH = "/jobs"  # its page, for people


def of_end(job: Job, attempt: Attempt | None, url: str) -> dict[str, Any]:
    return {"at": _iso(job.completed_at), "job": _job(job, attempt, url)}


def of_repair(job: Job, attempt: Attempt | None, url: str, at: float) -> dict[str, Any]:
    plan = None if attempt is None else attempt.plan
    return {"at": _iso(at), "job": _job(job, attempt, url), "plan": plan}


def of_alert(alert: Alert, job: Job | None, attempt: Attempt | None, url: str) -> dict[str, Any]:
    told = {
        "id": alert.id,
        "key": alert.key,
        "level": alert.level.value,
        "code": alert.code,
        "params": dict(alert.params),
        "job_id": alert.job_ref,
        "attempt_id": alert.attempt_id,
        "node_id": alert.node_id,
        "opened_at": _iso(alert.opened_at),
    }
    about = None if job is None else _job(job, attempt, url)
    return {"at": _iso(alert.opened_at), "job": about, "alert": told}


def of_test(at: float, asked_by: str) -> dict[str, Any]:
    return {"at": _iso(at), "job": None, "asked_by": asked_by}


def _job(job: Job, attempt: Attempt | None, url: str) -> dict[str, Any]:
    reason = job.reason
    return {
        "job_id": job.ref,
        "name": job.spec.name,
        "status": job.status.value,
        "reason": {"code": reason.code, "params": dict(reason.params)} if reason else None,
        "owner": job.owner,
        "started_at": _iso(job.started_at),
        "ended_at": _iso(job.completed_at),
        "exit_code": None if attempt is None else attempt.exit_code,
        "url": f"{url}{_JOB_PATH}/{job.ref}",
    }


def _iso(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
