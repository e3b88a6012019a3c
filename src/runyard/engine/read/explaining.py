"""One answer to "why": for a job that waits, and for one that has ended."""

from __future__ import annotations

import os
from typing import Any

from runyard.domain import ending, states
from runyard.domain.reasons import Reason
from runyard.engine.read.views import JobView

_TAIL_BYTES = 16 * 1024
_TAIL_LINES = 20


def explain(view: JobView, log_path: str) -> dict[str, Any]:
    job, attempt, wait = view.job, view.attempt, view.wait
    answer: dict[str, Any] = {
        "job_id": job.ref,
        "name": job.spec.name,
        "status": job.status.value,
        "reason": _reason(view.reason),
        "retry_count": job.retry_count,
        "max_retries": job.spec.max_retries,
        "command": job.spec.command,
        "wait": None,
        "end": None,
        "log_of": failed_service(view) or None,
        "log_tail": [],
    }
    if wait is not None:
        answer["wait"] = {
            "code": wait.reason.code,
            "params": dict(wait.reason.params),
            "position": wait.position,
            "est_start_low": wait.est_start_low,
            "est_start_high": wait.est_start_high,
            "blockers": list(wait.blockers),
        }
    if attempt is not None and attempt.end is not None:
        answer["end"] = {
            "attempt_id": attempt.attempt_id,
            "end": attempt.end.value,
            "cause": attempt.cause,
            "exit_code": attempt.exit_code,
            "signal": attempt.signal,
        }
    if job.status in states.ENDED or job.status is states.JobStatus.RETRYING:
        answer["log_tail"] = _tail(log_path)
    return answer


def failed_service(view: JobView) -> str:
    """The service that the newest attempt failed with: its log tells why, not the job's own."""
    if view.attempt is None or view.attempt.cause != ending.SERVICE_FAILED:
        return ""
    failure = (view.attempt.receipt or {}).get("service_failure") or {}
    return str(failure.get("service") or "")


def _reason(reason: Reason | None) -> dict[str, Any] | None:
    return None if reason is None else {"code": reason.code, "params": dict(reason.params)}


def _tail(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            data = file.read()
    except OSError:
        return []
    lines = data.decode(errors="replace").splitlines()
    return lines[-_TAIL_LINES:]
