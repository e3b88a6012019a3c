"""Puts the HTTP API together over a yard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from runyard import __version__
from runyard.api import docs_page, problems, web_headers
from runyard.api.answers import BASE
from runyard.api.auth import Auth
from runyard.api.describing import ERRORS, describe
from runyard.api.front import Front
from runyard.api.hosts import Hosts
from runyard.api.json_body import Json
from runyard.api.live_feed import LiveFeed
from runyard.api.live_socket import LiveSockets
from runyard.api.request_count import RequestCount
from runyard.api.routes import (
    about,
    actions,
    alerts,
    datasets,
    drills,
    evidence,
    health,
    history,
    job_metrics,
    jobs,
    keys,
    legacy,
    logs,
    nodes,
    notifications,
    output_files,
    overview,
    previews,
    queue,
    recovery,
    rules,
    session,
)
from runyard.api.web_files import BUILT, WebFiles
from runyard.engine.yard import Yard
from runyard.logs.log_file import LogFiles
from runyard.settings import Settings

_MB = 1024 * 1024
_BATCH_TIMES = 8  # a batch may be so many times larger than a single body


def create_app(yard: Yard, settings: Settings, web: Path = BUILT) -> FastAPI:
    app = _with_routes()
    auth = Auth(yard.authenticate)
    app.state.yard = yard
    app.state.auth = auth
    app.state.log_files = LogFiles()
    live = LiveSockets(LiveFeed(yard), auth)
    app.add_api_websocket_route(f"{BASE}/monitor/ws", live.serve)
    problems.add_handlers(app)
    limit = int(settings.max_body_mb * _MB)
    app.add_middleware(
        Front,
        auth=auth,
        hosts=Hosts((settings.host, *settings.allowed_hosts)),
        web=WebFiles(web),
        root_path=settings.root_path,
        body_limit=limit,
        body_limits={f"{BASE}/jobs/batch": limit * _BATCH_TIMES},
    )
    app.add_middleware(RequestCount, tallies=yard.tallies, plain=_plain_paths(app))
    return app


def described() -> dict[str, Any]:
    """The OpenAPI document, without a yard."""
    return describe(_with_routes())


def _with_routes() -> FastAPI:
    app = FastAPI(
        title="Runyard",
        version=__version__,
        description="Runs training jobs: queued, placed, supervised, explained.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        responses=ERRORS,
    )
    _add_routes(app)
    return app


def _plain_paths(app: FastAPI) -> frozenset[str]:
    paths = (getattr(route, "path", "") for route in app.routes)
    return frozenset(path for path in paths if path and "{" not in path)


def _add_routes(app: FastAPI) -> None:
    """The ones asked most come first: they are looked through in order."""
    # A submit is described by its route in jobs.py, and served without that route's layers.
    app.add_route(f"{BASE}/jobs", jobs.submit, ["POST"], include_in_schema=False)
    often = (jobs, actions, logs, history, job_metrics)
    for part in (
        *often,
        queue,
        recovery,
        drills,
        overview,
        nodes,
        alerts,
        rules,
        evidence,
        notifications,
        keys,
        session,
        previews,
        output_files,
        about,
        datasets,
    ):
        app.include_router(part.router, prefix=BASE)
    app.include_router(legacy.router)
    app.include_router(health.router)
    app.add_route("/openapi.json", _openapi, include_in_schema=False)
    app.add_route("/docs", _docs, include_in_schema=False)


async def _openapi(request: Request) -> Response:
    return Json(describe(request.app))


async def _docs(request: Request) -> Response:
    return HTMLResponse(docs_page.render(describe(request.app)), headers=web_headers.FOR_DOCS)
