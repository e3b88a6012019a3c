"""The other path family, `/api/training-jobs`, and `/cancel_job` for existing scheduler clients.

The same answers as under /api/v1/training; only a cancel waits 5 s unless it is told otherwise.
"""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.requests import Request

from runyard.api import asking, cancelling
from runyard.api.describing import body_of
from runyard.api.routes import jobs, logs
from runyard.api.routes.actions import CANCEL_ANSWERS
from runyard.wire import answers as shapes
from runyard.wire.log_answers import LogsAnswer

router = APIRouter()

_WAIT_S = 5.0

router.post(
    "/api/training-jobs",
    status_code=201,
    operation_id="submit_training_job",
    response_model=shapes.SubmitAnswer,
    openapi_extra=body_of("JobSubmission"),
)(jobs.submit)
router.get(
    "/api/training-jobs",
    operation_id="list_training_jobs",
    response_model=list[shapes.JobAnswer],
)(jobs.list_jobs)
router.get(
    "/api/training-jobs/{ref}",
    operation_id="get_training_job",
    response_model=shapes.JobAnswer,
)(jobs.get_job)
router.get(
    "/api/training-jobs/{ref}/logs",
    operation_id="get_training_job_logs",
    response_model=LogsAnswer,
    responses=logs.OTHER_FORMS,
)(logs.get_logs)


@router.post(
    "/api/training-jobs/{ref}/cancel",
    operation_id="cancel_training_job",
    response_model=shapes.CancelAnswer,
    responses=CANCEL_ANSWERS,
)
async def cancel(request: Request, ref: asking.Ref, wait: asking.Wait = None) -> Response:
    """Ask for the job's end and wait up to `wait` seconds (5) for the proof that it is gone."""
    seconds = _WAIT_S if wait is None else wait
    return await cancelling.one(asking.yard(request), ref, asking.actor(request), seconds)


@router.delete(
    "/cancel_job/{ref}",
    operation_id="delete_cancel_job",
    response_model=shapes.CancelAnswer,
    responses=CANCEL_ANSWERS,
)
async def cancel_job(request: Request, ref: asking.Ref, wait: asking.Wait = None) -> Response:
    """Cancel, for existing scheduler clients."""
    return await cancel(request, ref, wait)
