"""Submit, list, look at and delete jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from starlette.requests import Request

from runyard.api import answers, asking, submitting, waiting
from runyard.api.describing import body_of
from runyard.api.json_body import Json
from runyard.api.listing import chosen_jobs, page_headers
from runyard.wire import answers as shapes

router = APIRouter()

_LONGEST_PAGE = 500
_SUBMITTED_SINCE = "Submitted then or later: ISO 8601 or seconds since 1970."
_ENDED_SINCE = "Ended then or later: ISO 8601 or seconds since 1970."
Order = Literal[
    "submitted",
    "-submitted",
    "name",
    "-name",
    "status",
    "-status",
    "started",
    "-started",
    "ended",
    "-ended",
    "progress",
    "-progress",
    "owner",
    "-owner",
]


@router.post(
    "/jobs",
    status_code=201,
    operation_id="submit_job",
    response_model=shapes.SubmitAnswer,
    openapi_extra=body_of("JobSubmission"),
)
async def submit(request: Request) -> Response:
    """Submit one job; it is kept durably before the answer. `Idempotency-Key`: repeat safely."""
    return Json(await submitting.one(request), 201)


@router.post(
    "/jobs/batch",
    status_code=201,
    operation_id="submit_jobs",
    response_model=shapes.BatchAnswer,
    openapi_extra=body_of("BatchSubmission"),
)
async def submit_batch(request: Request) -> Response:
    """Submit many jobs: all of them are accepted, or none."""
    jobs = await submitting.many(request)
    return Json({"jobs": jobs, "count": len(jobs)}, 201)


@router.get("/jobs", operation_id="list_jobs", response_model=list[shapes.JobAnswer])
def list_jobs(
    request: Request,
    status: Annotated[list[str] | None, Query(description="Repeated or with commas.")] = None,
    type: Annotated[list[str] | None, Query()] = None,
    owner: Annotated[list[str] | None, Query()] = None,
    q: Annotated[str, Query(max_length=200, description="In name, description or id.")] = "",
    label: Annotated[list[str] | None, Query(description="`name=value`; all must fit.")] = None,
    since: Annotated[str | None, Query(description=_SUBMITTED_SINCE)] = None,
    ended_since: Annotated[str | None, Query(description=_ENDED_SINCE)] = None,
    array_id: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=_LONGEST_PAGE)] = 50,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    sort: Annotated[Order, Query(description="With `-` the other way round.")] = "-submitted",
    curves: Annotated[bool, Query(description="With the main metric of each job.")] = False,
) -> Response:
    """Newest first. `X-Total-Count`, `X-Next-Cursor` and `Link` tell about the other pages."""
    chosen = chosen_jobs(
        status=status,
        type=type,
        owner=owner,
        q=q,
        label=label,
        since=since,
        ended_since=ended_since,
        array_id=array_id,
    )
    page, views = asking.yard(request).jobs(chosen, limit, cursor, sort, curves=curves)
    return Json([answers.job(view) for view in views], headers=page_headers(request, page))


@router.get("/jobs/counts", operation_id="count_jobs", response_model=shapes.CountsAnswer)
def count_jobs(
    request: Request,
    type: Annotated[list[str] | None, Query()] = None,
    owner: Annotated[list[str] | None, Query()] = None,
    q: Annotated[str, Query(max_length=200, description="In name, description or id.")] = "",
    label: Annotated[list[str] | None, Query(description="`name=value`; all must fit.")] = None,
    since: Annotated[str | None, Query(description=_SUBMITTED_SINCE)] = None,
    ended_since: Annotated[str | None, Query(description=_ENDED_SINCE)] = None,
    array_id: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """How many of the chosen jobs have each status."""
    chosen = chosen_jobs(
        type=type,
        owner=owner,
        q=q,
        label=label,
        since=since,
        ended_since=ended_since,
        array_id=array_id,
    )
    found = asking.yard(request).pages.counts(chosen)
    return Json({"counts": found, "total": sum(found.values())})


@router.get("/jobs/{ref}", operation_id="get_job", response_model=shapes.JobAnswer)
def get_job(request: Request, ref: asking.Ref) -> Response:
    return Json(answers.job(asking.yard(request).job(asking.job_ref(ref))))


@router.delete("/jobs/{ref}", status_code=204, operation_id="delete_job")
def delete_job(request: Request, ref: asking.Ref) -> Response:
    """Forget an ended job: its record, folders and logs."""
    asking.yard(request).delete(asking.job_ref(ref), asking.actor(request))
    return Response(status_code=204)


@router.get("/jobs/{ref}/wait", operation_id="wait_for_job", response_model=shapes.JobAnswer)
async def wait_for_job(
    request: Request,
    ref: asking.Ref,
    timeout: Annotated[
        float, Query(ge=0, le=asking.LONGEST_WAIT_S, allow_inf_nan=False, description="Seconds.")
    ] = 30.0,
) -> Response:
    """The job as soon as it has ended, or as it is after `timeout` seconds."""
    view = await waiting.for_end(asking.yard(request), asking.job_ref(ref), timeout)
    return Json(answers.job(view))
