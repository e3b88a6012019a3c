"""Which variables hold secrets, judged by their names, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_PARTS = _set(
    "key keys apikey apikeys secret secrets password passwords passwd passphrase passcode token"
    " credential credentials cred creds auth authorization bearer cookie jwt dsn pat"
)
# Words written in one, such as HFTOKEN or dbpassword
_SECRET_ENDINGS = tuple(
    _set(
        "apikey accesskey secretkey privatekey token secret password passwd passphrase credentials"
    )
)
# "token" and "key" also belong to text models and data structures
_DATA_KEYS = _set("public sort primary foreign cache group partition dict label row")
_HARMLESS_BEFORE = {
    "token": _set("pad eos bos unk mask cls sep special stop start end max min num per image"),
    "key": _DATA_KEYS,
    "keys": _DATA_KEYS,
}
_HARMLESS_AFTER = {
    "token": _set("id ids index length len limit count type types dim size budget"),
    "key": _set("type types name names dim size length len"),
    "keys": _set("type types name names"),
    "auth": _set("sock type mode method"),
}
_SECRET_TOKENS = _set("api access refresh")
_IN_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:)([^/\s@]+)(@)")


def looks_secret(name: str) -> bool:
    parts = [part.lower() for part in _PARTS.findall(name)]
    if "pwd" in parts:  # PWD and OLDPWD are directories, DB_PWD is not
        return len(parts) > 1 and parts != ["old", "pwd"]
    if parts and parts[-1] == "pass":
        return len(parts) > 1 and parts[-2] not in (
            "single",
            "multi",
            "forward",
            "backward",
            "num",
        )
    return any(_is_secret(parts, place) for place in range(len(parts)))


def mask(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy for answers and logs: secret values hidden, passwords inside URLs too."""
    return {name: shown(name, value) for name, value in values.items()}


def shown(name: str, value: Any) -> Any:
    if value in (None, ""):
        return value
    if looks_secret(name):
        return MASK
    return hide_in_urls(value) if isinstance(value, str) else value


def hide_in_urls(text: str) -> str:
    return _IN_URL.sub(rf"\g<1>{MASK}\g<3>", text) if "://" in text else text


def _is_secret(parts: list[str], place: int) -> bool:
    part = parts[place]
    before = parts[place - 1] if place else ""
    after = parts[place + 1] if place + 1 < len(parts) else ""
    if part in _SECRET_PARTS:
        harmless = before in _HARMLESS_BEFORE.get(part, ()) or after in _HARMLESS_AFTER.get(
            part, ()
        )
        return not harmless
    if part == "tokens":
        return before in _SECRET_TOKENS
    return part.endswith(_SECRET_ENDINGS)
