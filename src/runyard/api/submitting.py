"""From a body to jobs that are kept: the hot path of the server."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking, repair_answers
from runyard.api.json_body import iso, loads
from runyard.domain import errors, reasons
from runyard.domain.job import Job, Submission
from runyard.engine.submit.submitting import Idempotency
from runyard.wire.jobs import JobSubmission, read_job

MOST_AT_ONCE = 50_000
_LONGEST_KEY = 255


async def one(request: Request) -> dict[str, Any]:
    body = loads(await request.body())
    asked = read_job(body)
    jobs = await _kept(request, [asked.to_submission()], body)
    return _accepted(request, jobs[0], asked)


async def many(request: Request) -> list[dict[str, Any]]:
    data = await request.body()
    body, asked, submissions = await run_in_threadpool(_read_many, data)
    jobs = await _kept(request, submissions, body)
    return [_accepted(request, job, one) for job, one in zip(jobs, asked, strict=True)]


def _read_many(data: bytes) -> tuple[Any, list[JobSubmission], list[Submission]]:
    body = loads(data)
    listed = body.get("jobs") if isinstance(body, dict) and set(body) == {"jobs"} else body
    if not isinstance(listed, list) or not listed:
        raise errors.InvalidRequest(
            'The body is a list of jobs, or {"jobs": [...]}, with at least one job in it.',
            fields=[{"field": "jobs", "code": "wrong_type", "message": "must be a list of jobs"}],
        )
    if len(listed) > MOST_AT_ONCE:
        raise errors.InvalidRequest(
            f"At most {MOST_AT_ONCE} jobs can be submitted at once.",
            fields=[{"field": "jobs", "code": "too_many", "message": f"holds {len(listed)} jobs"}],
        )
    asked = [read_job(entry, f"jobs[{number}].") for number, entry in enumerate(listed)]
    return body, asked, [one.to_submission() for one in asked]


async def _kept(request: Request, submissions: list[Submission], body: Any) -> list[Job]:
    yard, actor = asking.yard(request), asking.actor(request)
    kept = yard.submit_soon(submissions, actor, _idempotency(request, body))
    return await asyncio.wrap_future(kept)


def _idempotency(request: Request, body: Any) -> Idempotency | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= _LONGEST_KEY:
        raise errors.InvalidRequest(
            f"An Idempotency-Key has 1 to {_LONGEST_KEY} characters.",
            fields=[{"field": "Idempotency-Key", "code": "too_long", "message": "is too long"}],
        )
    # The same job written in another order is the same job.
    data = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return Idempotency(key, hashlib.sha256(data).hexdigest())


def _accepted(request: Request, job: Job, asked: JobSubmission) -> dict[str, Any]:
    warnings = asked.warnings()
    if job.reason is not None and job.reason.code == reasons.NEVER_FITS:
        warnings.append({"code": job.reason.code, "params": job.reason.params})
    return {
        "job_id": job.ref,
        "id": job.id,
        "status": job.status.value,
        "submitted_at": iso(job.submitted_at),
        "warnings": warnings,
        "suggestion": repair_answers.suggestion(asking.yard(request).suggestion(job)),
    }
