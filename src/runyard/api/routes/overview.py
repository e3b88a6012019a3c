"""What is known right now, of the whole and of one job, and how it was before."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.requests import Request

from runyard.api import asking, listing, metric_answers, monitor_answers
from runyard.api.json_body import Json
from runyard.domain import errors
from runyard.stores.base_metrics import MetricRange
from runyard.wire import monitor, refusals
from runyard.wire.metric_answers import MetricsAnswer

router = APIRouter()


@router.get(
    "/monitor/status",
    operation_id="get_monitor_status",
    response_model=monitor.MonitorStatusAnswer,
)
def status(request: Request) -> Response:
    """Nodes and GPUs as last measured, jobs by status, and how those that run are doing."""
    return Json(monitor_answers.overview(asking.yard(request).overview()))


@router.get(
    "/monitor/job/{ref}", operation_id="get_monitor_job", response_model=monitor.JobNowAnswer
)
def job(request: Request, ref: asking.Ref) -> Response:
    """Everything known of one job now: progress, time left, health, the newest of every metric,
    and what it uses against what it was given."""
    return Json(monitor_answers.job(asking.yard(request).job_now(asking.job_ref(ref))))


@router.get("/monitor/history", operation_id="get_monitor_history", response_model=MetricsAnswer)
def history(
    request: Request,
    job: Annotated[str | None, Query(description="A job's id.")] = None,
    node: Annotated[
        str | None, Query(description="A node's id or name; this server's by default.")
    ] = None,
    keys: Annotated[
        list[str] | None, Query(description="Names, with commas or repeated; all by default.")
    ] = None,
    since: Annotated[
        str | None, Query(description="Only from this time on: ISO 8601, or seconds since 1970.")
    ] = None,
    until: Annotated[str | None, Query(description="Only up to this time.")] = None,
    points: Annotated[
        int, Query(ge=1, le=10_000, description="At most so many of each series.")
    ] = 500,
) -> Response:
    """Series of a job or of a node, whatever the range in one answer: of every stretch the lowest
    and the highest are kept. NaN and infinities are words."""
    if job is not None and node is not None:
        found = [refusals.field("node", "bad_value", "name a job or a node, not both")]
        raise refusals.refusal(errors.InvalidRequest, found)
    series = asking.yard(request).history(
        job=None if job is None else asking.job_ref(job),
        node=node,
        names=listing.words(keys) or None,
        most=points,
        chosen=MetricRange(
            since=listing.moment("since", since), until=listing.moment("until", until)
        ),
    )
    return Json(metric_answers.series(series))
