"""Recovery: why a job failed, and another attempt by a plan."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.requests import Request

from runyard.api import asking
from runyard.api.json_body import Json
from runyard.engine.recover import recovery_desk
from runyard.wire.recovery_answers import AnalysisAnswer

router = APIRouter()


@router.post(
    "/recovery/analyze/{ref}", operation_id="analyze_failure", response_model=AnalysisAnswer
)
def analyze(request: Request, ref: asking.Ref) -> Response:
    """A fresh look at the newest attempt: what went wrong, with the proof, and what another
    attempt would do differently. 409 while it runs."""
    found = asking.yard(request).recovery.analyze(asking.job_ref(ref))
    return Json(recovery_desk.told(found))


@router.post(
    "/recovery/attempt/{ref}", operation_id="attempt_recovery", response_model=AnalysisAnswer
)
def attempt(
    request: Request,
    ref: asking.Ref,
    dry_run: Annotated[bool, Query(description="Answer the plan, start nothing.")] = False,
) -> Response:
    """Start a failed job again by its plan, at once. 409 where no plan helps."""
    yard, actor = asking.yard(request), asking.actor(request)
    found = yard.recover(asking.job_ref(ref), actor, dry_run=dry_run)
    return Json(recovery_desk.told(found))
