"""The queue as a whole, and the switch that starts and pauses dispatching."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import answers, asking, cancelling, page_answers
from runyard.api.describing import body_of
from runyard.api.json_body import Json, optional_object
from runyard.api.routes.actions import CANCEL_ANSWERS
from runyard.domain.job import Priority
from runyard.wire import answers as shapes
from runyard.wire import page_answers as pages
from runyard.wire import queue_answers, requests

router = APIRouter()


@router.get(
    "/queue/status", operation_id="get_queue_status", response_model=queue_answers.QueueAnswer
)
def queue_status(request: Request, limit: Annotated[int, Query(ge=0, le=500)] = 100) -> Response:
    """What runs, what waits and why; at most `limit` of the waiting jobs, first in order."""
    return Json(answers.queue(asking.yard(request).queue_status(limit)))


@router.get("/queue/capacity", operation_id="get_capacity", response_model=pages.CapacityAnswer)
def capacity(request: Request) -> Response:
    """What there is on each node, and how much of it attempts hold."""
    yard = asking.yard(request)
    rooms, used = yard.pages.rooms()
    return Json(page_answers.capacity(rooms, yard.settings.max_concurrent, used))


@router.get(
    "/queue/history", operation_id="get_wait_history", response_model=pages.WaitHistoryAnswer
)
def wait_history(request: Request) -> Response:
    """How long the newest jobs waited before they were started."""
    return Json(page_answers.past_waits(asking.yard(request).pages.past_waits()))


@router.post(
    "/queue/enqueue/{ref}",
    operation_id="enqueue_job",
    response_model=shapes.JobAnswer,
    openapi_extra=body_of("EnqueueRequest", required=False),
)
async def enqueue(
    request: Request, ref: asking.Ref, priority: Annotated[str | None, Query()] = None
) -> Response:
    """Release a hold and set the priority."""
    body = await optional_object(request)
    if priority is not None:
        body = {"priority": priority, **body}
    asked = requests.read(requests.EnqueueRequest, body)
    yard, actor = asking.yard(request), asking.actor(request)
    asking.job_ref(ref)
    wanted = Priority(asked.priority) if asked.priority else None
    await run_in_threadpool(yard.enqueue, ref, actor, wanted)
    return Json(answers.job(await run_in_threadpool(yard.job, ref)))


@router.post(
    "/queue/cancel/{ref}",
    operation_id="cancel_queued_job",
    response_model=shapes.CancelAnswer,
    responses=CANCEL_ANSWERS,
)
async def cancel(request: Request, ref: asking.Ref, wait: asking.Wait = None) -> Response:
    """The same as `/jobs/{ref}/cancel`."""
    return await cancelling.one(asking.yard(request), ref, asking.actor(request), wait or 0.0)


@router.post(
    "/system/start-queue", operation_id="start_queue", response_model=queue_answers.DispatchAnswer
)
def start_queue(request: Request) -> Response:
    """Start jobs again."""
    asking.yard(request).start_queue(asking.admin(request))
    return Json({"dispatching": True})


@router.post(
    "/system/stop-queue", operation_id="stop_queue", response_model=queue_answers.DispatchAnswer
)
def stop_queue(request: Request) -> Response:
    """Start no further jobs, also after a restart; those that run are left alone."""
    asking.yard(request).stop_queue(asking.admin(request))
    return Json({"dispatching": False})
