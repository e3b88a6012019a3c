"""API keys; for admins only."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking
from runyard.api.describing import body_of
from runyard.api.json_body import Json, iso, optional_object
from runyard.domain import errors
from runyard.stores.base import Key
from runyard.wire import key_answers as shapes
from runyard.wire import requests

router = APIRouter()


def _key(key: Key) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "role": key.role,
        "prefix": key.prefix,
        "created_at": iso(key.created_at),
        "last_used_at": iso(key.last_used_at),
        "expires_at": iso(key.expires_at),
        "local": key.local,
    }


@router.get("/keys", operation_id="list_keys", response_model=list[shapes.KeyAnswer])
def list_keys(request: Request) -> Response:
    asking.admin(request)
    found = asking.yard(request).keys()
    return Json([_key(key) for key in found])


@router.post(
    "/keys",
    status_code=201,
    operation_id="create_key",
    response_model=shapes.NewKeyAnswer,
    openapi_extra=body_of("KeyRequest"),
)
async def create_key(request: Request) -> Response:
    """Make a key. Its secret is in this answer and never shown again."""
    admin = asking.admin(request)
    asked = requests.read(requests.KeyRequest, await optional_object(request))
    expires_at = asked.expires_at
    if asked.expires_in_s is not None:
        expires_at = time.time() + asked.expires_in_s
    key, secret = await run_in_threadpool(
        asking.yard(request).create_key, asked.name, asked.role, admin, expires_at
    )
    request.app.state.auth.forget()
    return Json({**_key(key), "secret": secret}, 201, headers={"Cache-Control": "no-store"})


@router.delete("/keys/{key_id}", status_code=204, operation_id="revoke_key")
async def revoke_key(request: Request, key_id: str) -> Response:
    """From the next request on the key opens nothing."""
    admin = asking.admin(request)
    if not (key_id.isascii() and key_id.isdigit() and len(key_id) <= 18):
        raise errors.NotFound(f"There is no key {key_id[:100]}.", key_id=key_id[:100])
    await run_in_threadpool(asking.yard(request).revoke_key, int(key_id), admin)
    request.app.state.auth.forget()
    return Response(status_code=204)
