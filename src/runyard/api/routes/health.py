"""Whether the server lives, whether it can start jobs, and figures for Prometheus."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from runyard import __version__
from runyard.api import asking
from runyard.api.auth import is_local
from runyard.api.json_body import Json
from runyard.wire import answers as shapes

router = APIRouter()


@router.get("/healthz", operation_id="healthz", response_model=shapes.HealthzAnswer)
async def healthz() -> Response:
    """The process answers."""
    return Json({"status": "ok", "version": __version__})


@router.get("/readyz", operation_id="readyz", response_model=dict[str, Any])
def readyz(request: Request) -> Response:
    """200 when jobs can be started, else 503. Details only for clients on this machine."""
    found = asking.yard(request).health()
    ok = bool(found.get("ok"))
    return Json(found if is_local(request.scope) else {"ok": ok}, 200 if ok else 503)


@router.get("/metrics", operation_id="prometheus_metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """The server in figures, in the format of Prometheus."""
    # Imported when first asked for: most servers are never scraped.
    from runyard.api import prometheus

    accept = request.headers.get("accept", "")
    text, media_type = prometheus.exposition(asking.yard(request), accept)
    return Response(text, media_type=media_type)
