"""What is known of a job beside the job itself: attempts, events, receipt, explanation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.requests import Request

from runyard.api import answers, asking, page_answers, repair_answers
from runyard.api.json_body import Json
from runyard.engine.recover import failure_story
from runyard.wire import answers as shapes
from runyard.wire import page_answers as pages
from runyard.wire.attempt_answers import AttemptAnswer
from runyard.wire.receipt_answers import ReceiptAnswer
from runyard.wire.repair_answers import CheckpointAnswer, FilesAnswer

router = APIRouter()


@router.get(
    "/jobs/{ref}/attempts",
    operation_id="list_attempts",
    response_model=list[AttemptAnswer],
)
def attempts(request: Request, ref: asking.Ref) -> Response:
    """First attempt first."""
    found = asking.yard(request).attempts_and_services(asking.job_ref(ref))
    attempts = [one for one, _ in found]
    return Json(
        [
            answers.attempt(
                one,
                one.attempt_id.rpartition(".")[0],
                services,
                failure_story.changes_before(one, attempts),
            )
            for one, services in found
        ]
    )


@router.get(
    "/jobs/{ref}/events", operation_id="list_events", response_model=list[shapes.EventAnswer]
)
def events(
    request: Request,
    ref: asking.Ref,
    after: Annotated[int, Query(ge=0, le=2**62, description="Only events with a larger id.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """Oldest first."""
    found = asking.yard(request).events(asking.job_ref(ref), after, limit)
    return Json([answers.event(one) for one in found])


@router.get(
    "/jobs/{ref}/checkpoints",
    operation_id="list_checkpoints",
    response_model=list[CheckpointAnswer],
)
def checkpoints(request: Request, ref: asking.Ref) -> Response:
    """In the order they were saved, each with the verdict of its last check."""
    found = asking.yard(request).checkpoints(asking.job_ref(ref))
    return Json([repair_answers.checkpoint(one) for one in found])


@router.get("/jobs/{ref}/files", operation_id="list_files", response_model=FilesAnswer)
def files(request: Request, ref: asking.Ref) -> Response:
    """What is in the job's output directory; at most 10,000 files, links left out."""
    found = asking.yard(request).files(asking.job_ref(ref))
    return Json(repair_answers.files(found))


@router.get(
    "/jobs/{ref}/story", operation_id="get_story", response_model=list[pages.ChapterAnswer]
)
def story(request: Request, ref: asking.Ref) -> Response:
    """What happened, why, what the system did, and the lines of the log that prove it; the newest
    1,000 events, oldest first."""
    found = asking.yard(request).pages.story(asking.job_ref(ref))
    return Json([page_answers.chapter(one) for one in found])


@router.get("/jobs/{ref}/config", operation_id="get_config", response_model=pages.ConfigAnswer)
def config(request: Request, ref: asking.Ref) -> Response:
    """What was submitted and what the newest attempt got, as fields, job file and command line."""
    found = asking.yard(request).pages.configuration(asking.job_ref(ref))
    return Json(page_answers.configuration(found))


@router.get("/jobs/{ref}/explain", operation_id="explain_job", response_model=pages.ExplainAnswer)
def explain(request: Request, ref: asking.Ref) -> Response:
    """Why it waits, or how and why it ended."""
    return Json(asking.yard(request).explain(asking.job_ref(ref)))


@router.get("/jobs/{ref}/receipt", operation_id="get_receipt", response_model=ReceiptAnswer)
def receipt(request: Request, ref: asking.Ref) -> Response:
    """Proof of what the newest end gave back."""
    return Json(asking.yard(request).receipt(asking.job_ref(ref)))
