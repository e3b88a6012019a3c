"""Alerts: what people are told about troubles."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Response
from starlette.requests import Request

from runyard.api import asking, metric_answers
from runyard.api.json_body import Json, iso
from runyard.api.listing import next_page_headers, words
from runyard.domain import errors
from runyard.domain.monitoring.alert import Alert, AlertFilter, AlertLevel, AlertStatus
from runyard.wire import answers as shapes
from runyard.wire import refusals
from runyard.wire.metric_answers import MetricsAnswer

router = APIRouter()

Word = TypeVar("Word", bound=StrEnum)
AlertId = Annotated[int, Path(ge=1, le=2**62)]


def alert(found: Alert) -> dict[str, Any]:
    return {
        "id": found.id,
        "key": found.key,
        "level": found.level.value,
        "code": found.code,
        "params": found.params,
        "job_id": found.job_ref,
        "attempt_id": found.attempt_id,
        "node_id": found.node_id,
        "status": found.status.value,
        "times": found.times,
        "opened_at": iso(found.opened_at),
        "seen_at": iso(found.seen_at),
        "closed_at": iso(found.closed_at),
        "acknowledged_by": found.acknowledged_by,
        "evidence": found.evidence,
        "actions_taken": list(found.actions_taken),
    }


@router.get(
    "/alerts/{alert_id}/series",
    operation_id="get_alert_series",
    response_model=MetricsAnswer,
)
def alert_series(
    request: Request,
    alert_id: AlertId,
    points: Annotated[int, Query(ge=1, le=10_000)] = 300,
) -> Response:
    """What the alert tells of, from half an hour before it was opened."""
    _, found = asking.yard(request).pages.excerpt(alert_id, points)
    return Json(metric_answers.series(found))


@router.get("/alerts", operation_id="list_alerts", response_model=list[shapes.AlertAnswer])
def list_alerts(
    request: Request,
    status: Annotated[list[str] | None, Query(description="open, acknowledged, closed")] = None,
    level: Annotated[list[str] | None, Query(description="warning, error, critical")] = None,
    code: Annotated[list[str] | None, Query()] = None,
    job: Annotated[str | None, Query(description="A job's id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query()] = None,
) -> Response:
    """Newest first; closed ones too unless `status` says otherwise."""
    yard = asking.yard(request)
    chosen = AlertFilter(
        statuses=_chosen("status", AlertStatus, status),
        levels=_chosen("level", AlertLevel, level),
        codes=tuple(words(code)),
        job_id=yard.job(asking.job_ref(job)).job.id if job is not None else None,
    )
    page = yard.alert_desk.list(chosen, limit, cursor)
    headers = next_page_headers(request, page.total, page.next_cursor)
    return Json([alert(one) for one in page.alerts], headers=headers)


def _chosen(name: str, kind: type[Word], asked: Sequence[str] | None) -> tuple[Word, ...]:
    known = [word.value for word in kind]
    for word in words(asked):
        if word not in known:
            message = f"'{word}' is none of {', '.join(known)}"
            found = [refusals.field(name, "bad_value", message)]
            raise refusals.refusal(errors.InvalidRequest, found)
    return tuple(dict.fromkeys(kind(word) for word in words(asked)))


@router.get("/alerts/{alert_id}", operation_id="get_alert", response_model=shapes.AlertAnswer)
def get_alert(request: Request, alert_id: AlertId) -> Response:
    return Json(alert(asking.yard(request).alert_desk.get(alert_id)))


@router.post(
    "/alerts/{alert_id}/acknowledge",
    operation_id="acknowledge_alert",
    response_model=shapes.AlertAnswer,
)
def acknowledge(request: Request, alert_id: AlertId) -> Response:
    """Somebody has seen it; it stays until the trouble is over."""
    desk = asking.yard(request).alert_desk
    return Json(alert(desk.acknowledge(alert_id, asking.actor(request))))


@router.post(
    "/alerts/{alert_id}/close", operation_id="close_alert", response_model=shapes.AlertAnswer
)
def close(request: Request, alert_id: AlertId) -> Response:
    """A trouble that is still there, or comes again, opens another."""
    desk = asking.yard(request).alert_desk
    return Json(alert(desk.close_by_person(alert_id, asking.actor(request))))
