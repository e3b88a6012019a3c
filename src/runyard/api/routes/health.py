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
from runyard.engine.views import QueueStatus
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
    """The queue in numbers, in the format of Prometheus."""
    text = _exposition(asking.yard(request).queue_status(0))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _exposition(found: QueueStatus) -> str:
    lines = ["# HELP runyard_jobs Jobs by status.", "# TYPE runyard_jobs gauge"]
    lines += [
        f'runyard_jobs{{status="{status}"}} {count}'
        for status, count in sorted(found.counts.items())
    ]
    lines += [
        "# HELP runyard_dispatching 1 while waiting jobs are started.",
        "# TYPE runyard_dispatching gauge",
        f"runyard_dispatching {int(found.dispatching)}",
        "# HELP runyard_max_concurrent Most jobs at once.",
        "# TYPE runyard_max_concurrent gauge",
        f"runyard_max_concurrent {found.max_concurrent}",
        "# HELP runyard_machine_load_percent How busy the machine is, as the gates see it.",
        "# TYPE runyard_machine_load_percent gauge",
    ]
    lines += [
        f'runyard_machine_load_percent{{gate="{gate["name"]}"}} {gate["value"]}'
        for gate in found.gates
    ]
    return "\n".join(lines) + "\n"
