"""Log in with a browser, see who one is, log out."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking, session_cookie
from runyard.api.auth import Auth
from runyard.api.describing import body_of
from runyard.api.json_body import Json, iso, optional_object
from runyard.domain import errors
from runyard.engine.access.actor import Actor
from runyard.engine.access.logins import LONGEST_S, SESSION_PREFIX, LoggedIn, csrf_of
from runyard.wire import requests, sessions

router = APIRouter()

_SCOPES = {"viewer": ["read"], "user": ["read", "write"], "admin": ["read", "write", "admin"]}
_UNKEPT = {"Cache-Control": "no-store"}


def _who(actor: Actor, expires_at: float | None, csrf: str | None) -> dict[str, Any]:
    return {
        "name": actor.name,
        "role": actor.role,
        "scopes": _SCOPES[actor.role],
        "expires_at": iso(expires_at),
        "csrf": csrf,
    }


@router.post(
    "/session",
    operation_id="log_in",
    response_model=sessions.SessionAnswer,
    openapi_extra={**body_of("LoginRequest"), "security": []},
)
async def log_in(request: Request) -> Response:
    """Give a key, or the token of a login link, and get a cookie. No key is needed to ask."""
    asked = requests.read(sessions.LoginRequest, await optional_object(request))
    made = await _logged_in(request, asked)
    headers = {
        **_UNKEPT,
        "Set-Cookie": session_cookie.written(request.scope, made.secret, LONGEST_S),
    }
    return Json(_who(made.actor, made.expires_at, made.csrf), headers=headers)


async def _logged_in(request: Request, asked: sessions.LoginRequest) -> LoggedIn:
    auth: Auth = request.app.state.auth
    logins = asking.yard(request).logins
    if asked.key is not None:
        secret = asked.key.strip().encode("utf-8", "replace")
        actor = await auth.log_in(request.scope, secret)
        return await run_in_threadpool(logins.log_in, actor)
    try:
        return await run_in_threadpool(logins.use_link, str(asked.token))
    except errors.Unauthenticated:
        auth.count_failure(request.scope)
        raise


@router.get("/session", operation_id="get_session", response_model=sessions.SessionAnswer)
def get_session(request: Request) -> Response:
    """Who asks, by a session or by a key."""
    actor, yard = asking.actor(request), asking.yard(request)
    secret = Auth.key_of(request.scope)
    found = yard.logins.find(secret) if secret.startswith(SESSION_PREFIX) else None
    if found is not None:
        return Json(_who(actor, found.expires_at, csrf_of(secret)), headers=_UNKEPT)
    known = yard.keys()
    ends = [key.expires_at for key in known if key.key_id == actor.key_id]
    return Json(_who(actor, ends[0] if ends else None, None), headers=_UNKEPT)


@router.delete("/session", status_code=204, operation_id="log_out")
async def log_out(request: Request) -> Response:
    """End this session; a key is left alone."""
    asking.actor(request)
    secret = Auth.key_of(request.scope)
    if secret.startswith(SESSION_PREFIX):
        await run_in_threadpool(asking.yard(request).logins.log_out, secret)
        request.app.state.auth.forget()
    gone = session_cookie.written(request.scope, "", 0)
    return Response(status_code=204, headers={**_UNKEPT, "Set-Cookie": gone})


@router.post(
    "/session/link",
    status_code=201,
    operation_id="create_login_link",
    response_model=sessions.LoginLinkAnswer,
)
def create_login_link(request: Request) -> Response:
    """A link that logs one browser in as whoever asks, once, within ten minutes."""
    made = asking.yard(request).logins.make_link(asking.actor(request))
    found = {
        "token": made.token,
        "path": f"{session_cookie.root_path(request.scope)}/login#token={made.token}",
        "expires_at": iso(made.expires_at),
    }
    return Json(found, 201, headers=_UNKEPT)
