"""The cookie that a logged-in browser sends, and where it says the server is."""

from __future__ import annotations

import re

from starlette.types import Scope

from runyard.settings import is_root_path

_NAME = "runyard_session"
_LONGEST = 512
_PORT = re.compile(r":([0-9]{1,5})$")


def header(scope: Scope, name: bytes) -> str:
    """Of the first one of this name; empty when there is none."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def is_https(scope: Scope) -> bool:
    """Also behind a proxy that says so."""
    told = header(scope, b"x-forwarded-proto").partition(",")[0].strip().lower()
    return scope.get("scheme") in ("https", "wss") or told in ("https", "wss")


def root_path(scope: Scope) -> str:
    """Where this server is shown, without a slash at the end: '' or '/runyard'."""
    return str(scope.get("root", ""))


def told_root_path(scope: Scope) -> str:
    """What a proxy says; '' when it says nothing, or nothing that could be a path."""
    told = header(scope, b"x-forwarded-prefix").partition(",")[0].strip().rstrip("/")
    return told if is_root_path(told) else ""


def name_for(scope: Scope) -> str:
    """Cookies know no ports, and two servers on one machine must not take each other's."""
    host = header(scope, b"x-forwarded-host") or header(scope, b"host")
    found = _PORT.search(host.partition(",")[0].strip())
    return f"{_NAME}_{found[1]}" if found else _NAME


def read(scope: Scope) -> bytes | None:
    """The secret in this server's cookie."""
    wanted = name_for(scope)
    for key, value in scope["headers"]:
        if key != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";"):
            name, _, secret = pair.strip().partition("=")
            if name == wanted and 0 < len(secret) <= _LONGEST:
                return str(secret).encode("latin-1")
    return None


def written(scope: Scope, secret: str, lasts_s: float) -> str:
    """The Set-Cookie header; an empty secret takes the cookie away."""
    parts = [
        f"{name_for(scope)}={secret}",
        f"Path={root_path(scope) or '/'}",
        f"Max-Age={int(lasts_s)}",
        "HttpOnly",
        "SameSite=Strict",
    ]
    return "; ".join([*parts, "Secure"] if is_https(scope) else parts)
