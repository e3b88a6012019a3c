"""JSON as the store keeps it: by orjson, and exact also for the numbers JSON has no word for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

from runyard.domain import errors

_FLOAT = "$runyard.float"
_INT = "$runyard.int"


def encode(value: Any) -> str:
    try:
        text = orjson.dumps(value, default=_plain)
    except orjson.JSONEncodeError:
        return _encode_unusual(value)
    # orjson writes a float that is not finite as null.
    if b"null" in text and _has_non_finite(value):
        return _encode_unusual(value)
    return text.decode()


def decode(text: str | bytes) -> Any:
    value = orjson.loads(text)
    if ("$runyard." if isinstance(text, str) else b"$runyard.") in text:  # type: ignore[operator]
        return _restored(value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def _encode_unusual(value: Any) -> str:
    try:
        return orjson.dumps(_replaced(value)).decode()
    except orjson.JSONEncodeError as error:
        raise errors.BadRequest(f"This cannot be stored: {error}.") from error


def _has_non_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(_has_non_finite(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_has_non_finite(item) for item in value)
    return False


def _replaced(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return {_INT: str(value)}
    if isinstance(value, Mapping):
        return {key: _replaced(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item) for item in value]
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get(_FLOAT), str):
            return float(value[_FLOAT])
        if len(value) == 1 and isinstance(value.get(_INT), str):
            return int(value[_INT])
        return {key: _restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_restored(item) for item in value]
    return value
