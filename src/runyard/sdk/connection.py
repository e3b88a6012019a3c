"""HTTP to one server with nothing but the standard library: kept alive, one connection per thread.

Only what may safely be asked twice is asked again after a dropped connection.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

from runyard.sdk import errors

CONNECT_TIMEOUT_S = 5.0
TIMEOUT_S = 30.0
_PAUSES_S = (0.05, 0.3, 1.0)  # between tries of a request that may be repeated
_LOST = (OSError, http.client.HTTPException)


class Reply:
    """A whole answer that was a success."""

    __slots__ = ("data", "headers", "status")

    def __init__(self, status: int, headers: http.client.HTTPMessage, data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data

    def json(self) -> Any:
        return json.loads(self.data) if self.data else None


class Connection:
    def __init__(self, url: str, key: str | None, timeout_s: float = TIMEOUT_S) -> None:
        parts = _checked(url)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.key = key
        self.timeout_s = timeout_s
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._prefix = parts.path.rstrip("/")
        self._own = threading.local()
        self._all: weakref.WeakSet[_Kept] = weakref.WeakSet()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        repeatable: bool | None = None,
    ) -> Reply:
        """The answer, or the exception for its problem. GETs may be repeated by default."""
        may_repeat = method == "GET" if repeatable is None else repeatable
        target, sent_headers, data = self._prepared(path, query, body, headers)
        for pause_s in (*_PAUSES_S, None) if may_repeat else (None,):
            try:
                return self._once(method, target, data, sent_headers, timeout_s or self.timeout_s)
            except _LOST as lost:
                self.drop()
                # A time-out was already waited for once: asking again would only wait again.
                if pause_s is None or isinstance(lost, TimeoutError):
                    raise self._unreachable(lost) from lost
                time.sleep(pause_s)
        raise AssertionError("unreachable")

    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Stream:
        """An answer that is read as it comes, on a connection of its own. Close it."""
        target, sent_headers, _ = self._prepared(path, query, None, headers)
        link = self._opened(timeout_s or self.timeout_s)
        try:
            link.request("GET", target, headers=sent_headers)
            response = link.getresponse()
        except _LOST as lost:
            link.close()
            raise self._unreachable(lost) from lost
        if response.status >= 400:
            data = response.read()
            link.close()
            raise errors.from_problem(response.status, _parsed(data))
        return Stream(link, response)

    def dial(self, path: str) -> tuple[socket.socket, list[str]]:
        """A connected socket of its own for another protocol, and the head of a GET of `path`."""
        target, headers, _ = self._prepared(path, None, None, None)
        host = f"[{self._host}]" if ":" in self._host else self._host
        host += f":{self._port}" if self._port else ""
        link = self._opened(self.timeout_s)
        taken, link.sock = link.sock, None
        lines = [f"GET {target} HTTP/1.1", f"Host: {host}"]
        return taken, lines + [f"{name}: {value}" for name, value in headers.items()]

    def drop(self) -> None:
        """Close this thread's connection; the next request opens another."""
        kept: _Kept | None = getattr(self._own, "kept", None)
        if kept is not None:
            self._own.kept = None
            kept.link.close()

    def close(self) -> None:
        """Close this thread's connection, and end what other threads are waiting for on theirs."""
        self.drop()
        for kept in list(self._all):
            if kept.link.sock is not None:
                with contextlib.suppress(OSError):
                    kept.link.sock.shutdown(socket.SHUT_RDWR)

    def _prepared(
        self,
        path: str,
        query: Mapping[str, Any] | None,
        body: Any,
        headers: Mapping[str, str] | None,
    ) -> tuple[str, dict[str, str], bytes | None]:
        target = self._prefix + path
        if query:
            target += "?" + urlencode(query, doseq=True)
        sent = {"Accept": "application/json", **(headers or {})}
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, default=str).encode()
            sent["Content-Type"] = "application/json"
        return target, sent, data

    def _once(
        self,
        method: str,
        target: str,
        data: bytes | None,
        headers: dict[str, str],
        timeout_s: float,
    ) -> Reply:
        link = self._kept(timeout_s)
        try:
            link.request(method, target, body=data, headers=headers)
            response = link.getresponse()
            received = response.read()
        except BaseException:
            # Also for a signal's exception: half an answer must never be read as the next one.
            self.drop()
            raise
        if response.will_close:
            self.drop()
        if response.status >= 400:
            raise errors.from_problem(response.status, _parsed(received))
        return Reply(response.status, response.headers, received)

    def _kept(self, timeout_s: float) -> http.client.HTTPConnection:
        kept: _Kept | None = getattr(self._own, "kept", None)
        if kept is not None and kept.link.sock is not None:
            # Readable although nothing was asked: the server has closed it meanwhile.
            if not _readable(kept.link.sock):
                kept.link.sock.settimeout(timeout_s)
                return kept.link
            self.drop()
        self._own.kept = kept = _Kept(self._opened(timeout_s))
        self._all.add(kept)
        return kept.link

    def _opened(self, timeout_s: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        link = kind(self._host, self._port, timeout=min(CONNECT_TIMEOUT_S, timeout_s))
        try:
            link.connect()
        except OSError as failure:
            link.close()
            raise self._unreachable(failure) from failure
        link.sock.settimeout(timeout_s)
        return link

    def _unreachable(self, why: BaseException) -> errors.ServerUnreachable:
        words = str(why) or type(why).__name__
        return errors.ServerUnreachable(
            f"The server at {self.url} does not answer: {words}.",
            params={"url": self.url, "why": words},
        )


class _Kept:
    """A thread's connection, closed when the thread is gone."""

    def __init__(self, link: http.client.HTTPConnection) -> None:
        self.link = link

    def __del__(self) -> None:
        # At the end of the process a thread may still be reading: then nobody may wait for it.
        if not sys.is_finalizing():
            self.link.close()


class Stream:
    """An answer still being written by the server."""

    def __init__(
        self, link: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._link = link
        self._response = response
        self.headers = response.headers

    def read_some(self, most: int = 65536) -> bytes:
        """What has come, at least one byte; b"" at the end. TimeoutError when nothing came."""
        return self._response.read1(most)

    def read_line(self) -> bytes:
        return self._response.readline()

    def close(self) -> None:
        self._response.close()
        self._link.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _checked(url: str) -> SplitResult:
    """The parts of an address that can be one."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https") or any(map(str.isspace, url)):
        raise errors.BadRequest(
            f"{url!r} is not the address of a server; it looks like http://127.0.0.1:8765.",
            code="bad_url",
            params={"url": url},
        )
    return parts


def _readable(sock: socket.socket) -> bool:
    # Not select: it cannot take descriptors above 1023.
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
