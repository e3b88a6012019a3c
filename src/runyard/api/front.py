"""What every request passes first: id, host, origin, size, key. And the last net for errors."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping

from loguru import logger
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runyard.api import session_cookie
from runyard.api.auth import Auth
from runyard.api.hosts import Hosts
from runyard.api.problems import problem
from runyard.api.web_files import WebFiles
from runyard.domain import errors

_BODY_HEADERS = (b"content-length", b"transfer-encoding")
# Where an answer says nothing else: no browser and no proxy keeps what a key opened.
_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_LINGER_S = 5.0
_LINGER_BYTES = 64 * 1024 * 1024


class Front:
    def __init__(
        self,
        app: ASGIApp,
        *,
        auth: Auth,
        hosts: Hosts,
        web: WebFiles,
        root_path: str,
        body_limit: int,
        body_limits: Mapping[str, int],
    ) -> None:
        self._app = app
        self._auth = auth
        self._hosts = hosts
        self._web = web
        self._root_path = root_path.rstrip("/")
        self._body_limit = body_limit
        self._body_limits = body_limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        self._find_root(scope)
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await self._open_socket(scope, receive, send)

    def _find_root(self, scope: Scope) -> None:
        """A proxy may pass the path on as it was asked for, or without what leads to us."""
        told = session_cookie.told_root_path(scope)
        root = scope["root"] = self._root_path or told
        if root and (scope["path"] + "/").startswith(root + "/"):
            scope["path"] = scope["path"][len(root) :] or "/"

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = secrets.token_hex(8)
        scope["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = message["headers"]
                headers.append((b"x-request-id", request_id.encode()))
                told = {name for name, _ in headers}
                headers.extend(pair for pair in _ALWAYS if pair[0] not in told)
            await send(message)

        unread = True
        try:
            self._hosts.check(scope["method"], scope["headers"])
            limited = self._limited(scope, receive)
            if self._web.serves(scope):
                unread = False
                await self._web.serve(scope, limited, send_with_id)
                return
            scope["actor"] = await self._auth.identify(scope)
            unread = False
            await self._app(scope, limited, send_with_id)
        except errors.RunyardError as error:
            if started:
                raise
            if unread or isinstance(error, errors.TooLarge):
                answer = _lingering(scope, receive, send_with_id)
                await problem(error, request_id)(scope, receive, answer)
            else:
                await problem(error, request_id)(scope, receive, send_with_id)
        except ClientDisconnect:
            pass
        except Exception:
            logger.exception("request {} {} {} failed", request_id, scope["method"], scope["path"])
            if not started:
                await problem(errors.RunyardError(), request_id)(scope, receive, send_with_id)

    async def _open_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same for a WebSocket, whose origin matters: browsers let any page open one."""
        request_id = secrets.token_hex(8)
        scope["request_id"] = request_id
        try:
            self._hosts.check("WEBSOCKET", scope["headers"])
            scope["actor"] = await self._auth.identify(scope)
        except errors.RunyardError as error:
            await receive()  # its wish to connect
            if "websocket.http.response" in scope.get("extensions", {}):
                await problem(error, request_id)(scope, receive, send)
                await _until_closed(receive)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """`receive`, with TooLarge at once for a body that says it is too large, and for one that
        does not say as soon as it has become so."""
        length = None
        for name, value in scope["headers"]:
            if name == b"content-length":
                length = value
            elif name == b"transfer-encoding":
                length = b"unknown"
        if length is None:
            return receive
        limit = self._body_limits.get(scope["path"], self._body_limit)
        if length.isdigit():
            if int(length) > limit:
                raise errors.TooLarge(limit_bytes=limit, size_bytes=int(length))
            return receive
        return _counting(receive, limit)


def _lingering(scope: Scope, receive: Receive, send: Send) -> Send:
    """A client that is still sending would lose the answer if its connection were closed at once:
    it is told first, and what it sends is thrown away for a while."""
    has_body = any(name in _BODY_HEADERS for name, _ in scope["headers"])

    async def sent(message: Message) -> None:
        last = message["type"] == "http.response.body" and not message.get("more_body")
        if not (last and has_body):
            await send(message)
            return
        await send({**message, "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                await _thrown_away(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return sent


async def _thrown_away(receive: Receive) -> None:
    left = _LINGER_BYTES
    while left > 0:
        message = await receive()
        if message["type"] != "http.request" or not message.get("more_body"):
            return
        left -= len(message.get("body", b""))


async def _until_closed(receive: Receive) -> None:
    """The server beneath takes a refusal for a handshake left half done, and complains in its log,
    unless the connection is gone when we return: once it says that it closes, once that it has."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            await receive()
            await receive()


def _counting(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise errors.TooLarge(limit_bytes=limit)
        return message

    return counted
