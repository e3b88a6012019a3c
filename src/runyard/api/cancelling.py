"""Cancel one job or many, and wait for the proof that they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from runyard.api import asking, waiting
from runyard.api.answers import reason
from runyard.api.json_body import Json
from runyard.domain import errors, states
from runyard.domain.job import Job
from runyard.domain.states import JobStatus
from runyard.engine.access.actor import Actor
from runyard.engine.read.views import JobView
from runyard.engine.yard import Yard
from runyard.stores.base import JobFilter

_PAGE = 500


async def one(yard: Yard, ref: str, actor: Actor, wait_s: float, *, force: bool = False) -> Json:
    """200 `{status: cancelled, receipt}` once proven gone, else 202 `{status: cancelling}`."""
    asking.job_ref(ref)
    await run_in_threadpool(yard.cancel, ref, actor, force=force)
    view = await waiting.for_end(yard, ref, wait_s)
    gone = view.job.status is JobStatus.CANCELLED
    receipt = await run_in_threadpool(_receipt, yard, ref) if gone else None
    return Json(_answer(view, receipt), 200 if gone else 202)


def _answer(view: JobView, receipt: dict[str, Any] | None) -> dict[str, Any]:
    # Between the request and the look at it a retry may have come; what is told is what is.
    return {
        "job_id": view.job.ref,
        "status": view.job.status.value,
        "reason": reason(view.reason),
        "receipt": receipt,
    }


def _receipt(yard: Yard, ref: str) -> dict[str, Any] | None:
    try:
        return yard.receipt(ref)
    except errors.NotFound:
        return None  # it never ran, so there was nothing to give back


async def many(
    yard: Yard,
    actor: Actor,
    wait_s: float,
    *,
    refs: Sequence[str] | None,
    chosen: JobFilter | None,
    force: bool,
) -> dict[str, Any]:
    """Every job is asked for on its own: one that cannot be cancelled does not save the others."""
    if refs is None:
        assert chosen is not None
        refs = await run_in_threadpool(_refs, yard, chosen)
    asked, refused = await run_in_threadpool(_ask_all, yard, refs, actor, force)
    gone = {job.ref for job in asked if job.status is JobStatus.CANCELLED}
    if wait_s > 0:
        living = [job.ref for job in asked if job.ref not in gone]
        views = await asyncio.gather(*(waiting.for_end(yard, ref, wait_s) for ref in living))
        gone |= {view.job.ref for view in views if view.job.status is JobStatus.CANCELLED}
    return {
        "cancelled": [job.ref for job in asked if job.ref in gone],
        "cancelling": [job.ref for job in asked if job.ref not in gone],
        "refused": refused,
    }


def _refs(yard: Yard, chosen: JobFilter) -> list[str]:
    """Waiting jobs first, so that none of them starts in the place of one that was running."""
    waiting_refs: list[str] = []
    active_refs: list[str] = []
    cursor = None
    while True:
        page, _ = yard.jobs(chosen, _PAGE, cursor)
        for job in page.jobs:
            (waiting_refs if job.status in states.WAITING else active_refs).append(job.ref)
        cursor = page.next_cursor
        if cursor is None:
            return waiting_refs + active_refs


def _ask_all(
    yard: Yard, refs: Sequence[str], actor: Actor, force: bool
) -> tuple[list[Job], list[dict[str, Any]]]:
    asked, refused = [], []
    for ref in dict.fromkeys(refs):
        try:
            asked.append(yard.cancel(asking.job_ref(ref), actor, force=force))
        except (errors.NotFound, errors.Conflict, errors.Forbidden) as error:
            refused.append({"job_id": ref, "code": error.code, "message": error.message})
    return asked, refused
