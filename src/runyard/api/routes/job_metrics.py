"""The metrics of a job, as many points as are wanted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.requests import Request

from runyard.api import asking, listing, metric_answers
from runyard.api.json_body import Json
from runyard.stores.base_metrics import MetricRange
from runyard.wire import metric_answers as shapes

router = APIRouter()


@router.get(
    "/jobs/{ref}/metrics", operation_id="get_job_metrics", response_model=shapes.MetricsAnswer
)
def metrics(
    request: Request,
    ref: asking.Ref,
    keys: Annotated[
        list[str] | None, Query(description="Names, with commas or repeated; all by default.")
    ] = None,
    points: Annotated[
        int, Query(ge=1, le=10_000, description="At most so many of each series.")
    ] = 1000,
    since: Annotated[
        str | None, Query(description="Only from this time on: ISO 8601, or seconds since 1970.")
    ] = None,
    until: Annotated[str | None, Query(description="Only up to this time.")] = None,
    since_step: Annotated[
        int | None, Query(ge=0, lt=2**63, description="Only from this step on.")
    ] = None,
    attempt: Annotated[
        int | None,
        Query(
            ge=1,
            lt=2**31,
            description="Of one attempt; by default the run as it "
            "stands, where steps that were done again are those of the later attempt.",
        ),
    ] = None,
) -> Response:
    """Of every stretch the lowest, the highest and NaN are kept, never an average. NaN and
    infinities are the words NaN, Infinity and -Infinity."""
    chosen = MetricRange(
        since=listing.moment("since", since),
        until=listing.moment("until", until),
        since_step=since_step,
        attempt=attempt,
    )
    names = listing.words(keys) or None
    found = asking.yard(request).metrics(asking.job_ref(ref), names, points, chosen)
    return Json(metric_answers.series(found))
