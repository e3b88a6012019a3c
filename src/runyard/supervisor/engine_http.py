"""Talking to a container engine over its unix socket with nothing but the standard library.

For the runner, of which one lives as long as every container: the engine's own Python package
would cost each of them a tenth of a second at the start and some 20 MB for as long as it runs.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

ANSWER_S = 60.0  # an engine under load takes its time; one that hangs is as good as gone


class EngineGone(Exception):
    """The engine cannot be reached, or broke off: nobody knows whether it did what was asked."""


class EngineRefused(Exception):
    """The engine's own answer: no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Engine:
    """Each call has a connection of its own: threads may share an Engine."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        timeout_s: float | None = ANSWER_S,
    ) -> Any:
        """The answer, read as JSON where it is that. EngineRefused, EngineGone."""
        connection = _Connection(self._socket_path, timeout_s)
        target = path + ("?" + urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, target, data, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException) as error:
            raise EngineGone(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if reply.status >= 400:
            raise EngineRefused(reply.status, _message(text))
        return _parsed(text)

    def inspect(self, name: str) -> dict[str, Any] | None:
        """What the engine knows of a container; None where it has none of this name."""
        try:
            found: dict[str, Any] = self.call("GET", f"/containers/{quote(name)}/json")
        except EngineRefused as error:
            if error.status == 404:
                return None
            raise
        return found


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def _message(text: bytes) -> str:
    told = _parsed(text)
    if isinstance(told, dict):
        return str(told.get("message") or told.get("cause") or told)
    return text.decode(errors="replace").strip()
