"""What a client of the live socket may say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runyard.api.json_body import loads
from runyard.domain import errors

_MOST = 500  # topics in one message
_LARGEST_ID = 2**62


@dataclass(frozen=True, slots=True)
class Request:
    subscribe: list[str]
    unsubscribe: list[str]
    last_id: int | None


def read_request(text: str | bytes) -> Request:
    """BadJson or InvalidRequest. Fields that are not known are left to newer servers."""
    found = loads(text.encode() if isinstance(text, str) else text)
    if not isinstance(found, dict):
        raise errors.BadJson(why="an object is expected here")
    last_id = found.get("last_id")
    if last_id is not None and not _is_id(last_id):
        raise errors.InvalidRequest("last_id is the id of a message.", field="last_id")
    return Request(_topics(found, "subscribe"), _topics(found, "unsubscribe"), last_id)


def _topics(found: dict[str, Any], field: str) -> list[str]:
    asked = found.get(field)
    if asked is None:
        return []
    if isinstance(asked, str):
        return [asked]
    good = isinstance(asked, list) and all(isinstance(topic, str) for topic in asked)
    if not good or len(asked) > _MOST:
        raise errors.InvalidRequest(f"{field} is a list of topics.", field=field)
    return list(dict.fromkeys(asked))


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_ID
