"""Who is told of everybody's jobs, a way to try it, and what became of what was told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import answers, asking
from runyard.api.describing import body_of
from runyard.api.json_body import Json, iso, optional_object
from runyard.api.listing import next_page_headers, words
from runyard.domain import errors, notifications
from runyard.domain.notifications import (
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    WorkspaceTarget,
)
from runyard.wire import notification_answers as shapes
from runyard.wire import notify_targets, refusals, requests

router = APIRouter()

TargetId = Annotated[int, Path(ge=1, le=2**62)]
_TEST_S = 15.0  # a try takes ten seconds at most
_LOOK_S = 0.05


def target(found: WorkspaceTarget) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        **notifications.shown_target(found.where),
        "enabled": found.enabled,
        "created_by": found.created_by,
        "created_at": iso(found.created_at),
    }


def delivery(found: Delivery) -> dict[str, Any]:
    to = found.recipient
    return {
        "id": found.id,
        "delivery": found.delivery_id,
        "event": found.event,
        "job_id": found.job_ref,
        "target": {
            "id": to.workspace_target,
            "name": to.name or None,
            "type": to.type,
            "url": notifications.shown_url(to.type, to.url) if to.url else None,
        },
        "status": found.status.value,
        "tries": found.tries,
        "created_at": iso(found.created_at),
        "due_at": iso(found.due_at) if found.status in notifications.UNFINISHED else None,
        "sent_at": iso(found.sent_at),
        "error": answers.reason(found.last_error),
    }


@router.get(
    "/notifications",
    operation_id="list_notification_targets",
    response_model=list[shapes.NotificationTargetAnswer],
)
def list_targets(request: Request) -> Response:
    """By name; for admins."""
    desk = asking.yard(request).notifications
    return Json([target(one) for one in desk.targets(asking.actor(request))])


@router.post(
    "/notifications",
    status_code=201,
    operation_id="create_notification_target",
    response_model=shapes.NotificationTargetAnswer,
    openapi_extra=body_of("NotificationRequest"),
)
async def create_target(request: Request) -> Response:
    """Its secret and the secret parts of its address are never shown again."""
    admin = asking.admin(request)
    asked = requests.read(notify_targets.NotificationRequest, await optional_object(request))
    desk = asking.yard(request).notifications
    return Json(target(await run_in_threadpool(desk.add, asked.to_new(), admin)), 201)


@router.post(
    "/notifications/test",
    operation_id="test_notification",
    response_model=shapes.DeliveryAnswer,
    openapi_extra=body_of("NotificationTest"),
)
async def test_unsaved(request: Request) -> Response:
    """Send a test to a target that is not kept, and wait for the outcome."""
    actor = asking.actor(request)
    asked = requests.read(notify_targets.NotificationTest, await optional_object(request))
    desk = asking.yard(request).notifications
    begun = await run_in_threadpool(desk.test_unsaved, asked.to_target(), actor)
    return await _outcome(request, begun)


@router.get(
    "/notifications/deliveries",
    operation_id="list_deliveries",
    response_model=list[shapes.DeliveryAnswer],
)
def list_deliveries(
    request: Request,
    status: Annotated[
        list[str] | None, Query(description="waiting, sending, sent, given_up")
    ] = None,
    event: Annotated[list[str] | None, Query()] = None,
    job: Annotated[str | None, Query(description="A job's id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query()] = None,
) -> Response:
    """Newest first: of everything for admins, else of one's own jobs."""
    yard = asking.yard(request)
    chosen = DeliveryFilter(
        statuses=_statuses(status),
        events=tuple(words(event)),
        job_id=yard.job(asking.job_ref(job)).job.id if job is not None else None,
    )
    page = yard.notifications.deliveries(chosen, asking.actor(request), limit, cursor)
    headers = next_page_headers(request, page.total, page.next_cursor)
    return Json([delivery(one) for one in page.deliveries], headers=headers)


@router.put(
    "/notifications/{target_id}",
    operation_id="change_notification_target",
    response_model=shapes.NotificationTargetAnswer,
    openapi_extra=body_of("NotificationRequest"),
)
async def change_target(request: Request, target_id: TargetId) -> Response:
    """What the body leaves out stays as it is, and so does what it gives back masked."""
    admin = asking.admin(request)
    body = await optional_object(request)
    desk = asking.yard(request).notifications
    known = await run_in_threadpool(desk.target, target_id, admin)
    whole = notify_targets.merged(known, body)
    asked = requests.read(notify_targets.NotificationRequest, whole)
    changed = await run_in_threadpool(desk.change, target_id, asked.to_new(), admin)
    return Json(target(changed))


@router.delete(
    "/notifications/{target_id}", status_code=204, operation_id="delete_notification_target"
)
def delete_target(request: Request, target_id: TargetId) -> Response:
    """What still waits for it is given up."""
    asking.yard(request).notifications.remove(target_id, asking.admin(request))
    return Response(status_code=204)


@router.post(
    "/notifications/{target_id}/test",
    operation_id="test_notification_target",
    response_model=shapes.DeliveryAnswer,
)
async def test_target(request: Request, target_id: TargetId) -> Response:
    """Send a test, also to a target that is switched off, and wait for the outcome."""
    admin = asking.admin(request)
    desk = asking.yard(request).notifications
    return await _outcome(request, await run_in_threadpool(desk.test, target_id, admin))


async def _outcome(request: Request, begun: Delivery) -> Response:
    """How the one try of a test ended; as it stands if nobody sends here."""
    desk = asking.yard(request).notifications
    deadline = time.monotonic() + _TEST_S
    found: Delivery | None = begun
    while found is not None and found.status in notifications.UNFINISHED:
        if time.monotonic() > deadline or asking.yard(request).hub.closing:
            break
        await asyncio.sleep(_LOOK_S)
        found = await run_in_threadpool(desk.delivery, begun.delivery_id)
    return Json(delivery(found or begun))


def _statuses(asked: Sequence[str] | None) -> tuple[DeliveryStatus, ...]:
    known = [status.value for status in DeliveryStatus]
    for word in words(asked):
        if word not in known:
            message = f"'{word}' is none of {', '.join(known)}"
            found = [refusals.field("status", "bad_value", message)]
            raise refusals.refusal(errors.InvalidRequest, found)
    return tuple(dict.fromkeys(DeliveryStatus(word) for word in words(asked)))
