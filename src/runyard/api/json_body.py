"""JSON in and out: bodies read strictly, answers written fast."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from runyard.domain import errors


class Json(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return dumped(content)


def dumped(content: Any) -> bytes:
    try:
        return orjson.dumps(content, default=_plain)
    except TypeError:
        # Text that is not valid Unicode (from a path, say) still has to be shown somehow.
        return json.dumps(content, default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value)
    return str(value)


def loads(data: bytes) -> Any:
    """The parsed body; BadJson when it is not strict JSON in UTF-8."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise errors.BadJson(why=str(error).rstrip(".")) from None


async def optional_object(request: Request) -> dict[str, Any]:
    """The object in the body, empty when there is no body."""
    data = await request.body()
    if not data.strip():
        return {}
    found = loads(data)
    if not isinstance(found, dict):
        raise errors.BadJson(why="an object is expected here")
    return found


def iso(at: float | None) -> str | None:
    """Seconds since the epoch as ISO 8601 in UTC, always with microseconds so that texts sort."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
