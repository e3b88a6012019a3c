"""Waiting for a job's end without holding a thread."""

from __future__ import annotations

import time

from starlette.concurrency import run_in_threadpool

from runyard.domain import states
from runyard.engine.read.views import JobView
from runyard.engine.yard import Yard

# Events of other servers could be missed while a connection to the store is down.
_LOOK_AGAIN_S = 5.0


async def for_end(yard: Yard, ref: str, seconds: float) -> JobView:
    """The job once it has ended, or as it is after `seconds` or when the server goes away."""
    deadline = time.monotonic() + seconds
    view = await run_in_threadpool(yard.job, ref)
    if seconds <= 0 or view.job.status in states.ENDED:
        return view
    with yard.hub.watch(view.job.id) as watch:
        while True:
            view = await run_in_threadpool(yard.job, ref)
            left = deadline - time.monotonic()
            if view.job.status in states.ENDED or left <= 0 or watch.closing:
                return view
            await watch.wait(min(left, _LOOK_AGAIN_S))
