"""What this server is."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.requests import Request

from runyard.api import asking
from runyard.api.json_body import Json
from runyard.wire import page_answers as shapes

router = APIRouter()


@router.get("/system/about", operation_id="get_about", response_model=shapes.AboutAnswer)
def about(request: Request) -> Response:
    """Version, database, how long it runs, and the settings that matter to people."""
    return Json(asking.yard(request).pages.about())
