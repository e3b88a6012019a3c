"""Fire drills: a clone of a job, and the fault that is done to it."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import answers, asking
from runyard.api.describing import body_of
from runyard.api.json_body import Json, iso, optional_object
from runyard.wire import answers as shapes
from runyard.wire import drills, requests

router = APIRouter()


@router.post(
    "/jobs/{ref}/drill",
    operation_id="start_drill",
    status_code=201,
    response_model=shapes.JobAnswer,
    openapi_extra=body_of("DrillRequest"),
)
async def start_drill(request: Request, ref: asking.Ref) -> Response:
    """Submit a throwaway clone of the job, for a fault to be done to it while it runs."""
    asked = requests.read(drills.DrillRequest, await optional_object(request))
    yard, actor = asking.yard(request), asking.actor(request)
    asking.job_ref(ref)
    clone = await run_in_threadpool(yard.drills.start, ref, asked.fault, actor)
    view = await run_in_threadpool(yard.job, clone.ref)
    return Json(answers.job(view), status_code=201)


@router.post(
    "/jobs/{ref}/drill/fault", operation_id="strike_drill", response_model=drills.FaultAnswer
)
def strike_drill(request: Request, ref: asking.Ref) -> Response:
    """Do the fault to a running clone; 409 `drill_too_early` says what it waits for."""
    yard = asking.yard(request)
    done = yard.drills.strike(asking.job_ref(ref), asking.actor(request))
    return Json({**done, "at": iso(done["at"])})
