"""Counts requests by route, never by address: what clients make up must not become a label."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runyard.api.answers import BASE
from runyard.engine.tallies import Tallies

UNKNOWN = "unknown"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestCount:
    def __init__(self, app: ASGIApp, *, tallies: Tallies, plain: frozenset[str]) -> None:
        """`plain` are the paths of routes without parameters."""
        self._app = app
        self._tallies = tallies
        self._plain = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            route = self._route(scope)
            method = scope["method"] if scope["method"] in _METHODS else UNKNOWN
            self._tallies.requests.add(method, route, str(status))
            self._tallies.request_s.add(time.perf_counter() - began, route)

    def _route(self, scope: Scope) -> str:
        path = getattr(scope.get("route"), "path", None)
        if isinstance(path, str):
            # A route of a router knows nothing of what that router was put below.
            below = scope["path"].startswith(BASE) and not path.startswith(BASE)
            return BASE + path if below else path
        return scope["path"] if scope["path"] in self._plain else UNKNOWN
