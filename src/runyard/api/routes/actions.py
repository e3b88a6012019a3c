"""What can be done to a job: cancel, force-kill, retry, renew its lease, hold, release."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import answers, asking, cancelling
from runyard.api.describing import body_of
from runyard.api.json_body import Json, iso, optional_object
from runyard.api.listing import statuses
from runyard.domain import errors, states
from runyard.domain.states import JobStatus
from runyard.engine.access.actor import Actor
from runyard.stores.base import JobFilter
from runyard.wire import answers as shapes
from runyard.wire import refusals, requests

router = APIRouter()

_NOT_ENDED = tuple(status for status in JobStatus if status not in states.ENDED)
CANCEL_ANSWERS: dict[int | str, dict[str, Any]] = {
    202: {"model": shapes.CancelAnswer, "description": "Asked for; it is not proven gone yet."}
}


@router.post(
    "/jobs/cancel",
    operation_id="cancel_jobs",
    response_model=shapes.CancelManyAnswer,
    openapi_extra=body_of("CancelMany"),
)
async def cancel_many(request: Request, wait: asking.Wait = None) -> Response:
    """Cancel many jobs, by ids or by filter. A user's filter meets only the user's own jobs."""
    asked = requests.read(requests.CancelMany, await optional_object(request))
    yard, actor = asking.yard(request), asking.actor(request)
    actor.must_submit()
    refs = asked.ids if asked.ids is not None else asked.job_ids
    answer = await cancelling.many(
        yard,
        actor,
        wait or 0.0,
        refs=[str(ref) for ref in refs] if refs is not None else None,
        chosen=_chosen(asked.filter or requests.CancelFilter(), actor),
        force=asked.force,
    )
    return Json(answer)


def _chosen(asked: requests.CancelFilter, actor: Actor) -> JobFilter:
    owners = tuple(asked.owner or ())
    if actor.role != "admin":
        if owners not in ((), (actor.name,)):
            raise errors.Forbidden(name=actor.name, role=actor.role)
        owners = (actor.name,)
    wanted = tuple(status for status in statuses(asked.status) if status in _NOT_ENDED)
    if asked.status is not None and not wanted:
        message = "none of these can be cancelled"
        found = [refusals.field("filter.status", "bad_value", message)]
        raise refusals.refusal(errors.InvalidRequest, found)
    return JobFilter(
        statuses=wanted or _NOT_ENDED,
        job_types=tuple(asked.type or ()),
        owners=owners,
        text=asked.q or "",
        labels=asked.label or {},
        array_id=asked.array_id,
    )


@router.post(
    "/jobs/{ref}/cancel",
    operation_id="cancel_job",
    response_model=shapes.CancelAnswer,
    responses=CANCEL_ANSWERS,
)
async def cancel(request: Request, ref: asking.Ref, wait: asking.Wait = None) -> Response:
    """Ask for the job's end and wait up to `wait` seconds (0) for the proof that it is gone."""
    return await cancelling.one(asking.yard(request), ref, asking.actor(request), wait or 0.0)


@router.post(
    "/jobs/{ref}/force-kill",
    operation_id="force_kill_job",
    response_model=shapes.CancelAnswer,
    responses=CANCEL_ANSWERS,
)
async def force_kill(request: Request, ref: asking.Ref, wait: asking.Wait = None) -> Response:
    """Cancel without grace."""
    yard, actor = asking.yard(request), asking.actor(request)
    return await cancelling.one(yard, ref, actor, wait or 0.0, force=True)


@router.post(
    "/jobs/{ref}/retry",
    operation_id="retry_job",
    response_model=shapes.JobAnswer,
    openapi_extra=body_of("RetryRequest", required=False),
)
async def retry(
    request: Request, ref: asking.Ref, fresh: Annotated[bool, Query()] = False
) -> Response:
    """Run an ended job again, from its newest good checkpoint unless `fresh`."""
    asked = requests.read(requests.RetryRequest, await optional_object(request))
    yard, actor = asking.yard(request), asking.actor(request)
    asking.job_ref(ref)
    await run_in_threadpool(yard.retry, ref, actor, fresh=fresh or asked.fresh)
    return Json(answers.job(await run_in_threadpool(yard.job, ref)))


@router.post("/jobs/{ref}/lease", operation_id="renew_lease", response_model=shapes.LeaseAnswer)
def renew_lease(request: Request, ref: asking.Ref) -> Response:
    """The client that submitted the job is alive: its lease begins again at full length."""
    job, lease = asking.yard(request).renew(asking.job_ref(ref), asking.actor(request))
    terms = job.spec.lease
    length_s = terms.length_s if terms else 0.0
    return Json({"job_id": job.ref, "lease_s": length_s, "expires_at": iso(lease.expires_at)})


@router.post("/jobs/{ref}/hold", operation_id="hold_job", response_model=shapes.JobAnswer)
def hold(request: Request, ref: asking.Ref) -> Response:
    """Keep a waiting job from starting until it is released."""
    yard = asking.yard(request)
    yard.hold(asking.job_ref(ref), asking.actor(request))
    return Json(answers.job(yard.job(ref)))


@router.post("/jobs/{ref}/release", operation_id="release_job", response_model=shapes.JobAnswer)
def release(request: Request, ref: asking.Ref) -> Response:
    yard = asking.yard(request)
    yard.release(asking.job_ref(ref), asking.actor(request))
    return Json(answers.job(yard.job(ref)))
