"""HTTP requests on http.client: TLS verified, redirects followed without leaking a credential,
proxies only where the environment names them."""

from __future__ import annotations

import base64
import functools
import http.client
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from urllib.parse import unquote, urljoin, urlsplit

from runyard.prefetch import addresses, backoff
from runyard.prefetch.failures import Failure, Trouble

Authorize = Callable[[str, str], Mapping[str, str]]  # method and url to headers

USER_AGENT = "runyard-prefetch"
LONGEST_ANSWER = 64 << 20  # of a listing, not of a file
_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 10
_SMALL_REST = 1 << 16  # of an answer; cheaper to read than to connect again
_HUB_MISSING = {"RepoNotFound", "RevisionNotFound", "EntryNotFound"}


def nobody(method: str, url: str) -> Mapping[str, str]:  # noqa: ARG001 (an Authorize)
    return {}


class Answer:
    """Status and headers, the body still to be read. Close it, or use it as a context."""

    def __init__(self, response: http.client.HTTPResponse, url: str, close: Callable[[], None]):
        self.status, self.headers, self.url = response.status, response.headers, url
        self._response, self._close = response, close

    def __enter__(self) -> Answer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Keep the connection for the next request, unless too much is unread in it."""
        left = self._response.length
        try:
            if error is None and left is not None and left <= _SMALL_REST:
                self._response.read()
        except (OSError, http.client.HTTPException):
            pass
        if not self._response.isclosed():
            self._close()

    def read_some(self, most: int) -> bytes:
        """What has arrived, without waiting for more; empty at the end."""
        try:
            return self._response.read1(most)
        except (OSError, http.client.HTTPException) as error:
            raise trouble_of(error) from error

    def read_all(self) -> bytes:
        pieces, length = [], 0
        while piece := self.read_some(1 << 18):
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST_ANSWER:
                raise Failure("bad_answer", None, reason="too_long")
        if self._response.length:
            raise Trouble("cut")
        return b"".join(pieces)


class Connections:
    """Open connections of one thread, kept for the next request to the same server."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._open: dict[tuple[str, str, int], http.client.HTTPConnection] = {}

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        authorize: Authorize = nobody,
    ) -> Answer:
        """The answer after redirects. `authorize` is asked for the first server only: a redirect
        to another one must not carry its credential."""
        first = addresses.origin(url)
        for _ in range(_MOST_REDIRECTS):
            own = authorize(method, url) if addresses.origin(url) == first else {}
            answer = self._send(method, url, {**(headers or {}), **own})
            target = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or target is None:
                return answer
            with answer:
                url = _redirected(url, target)
        raise Failure("bad_answer", None, reason="too_many_redirects")

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def _send(self, method: str, url: str, headers: Mapping[str, str]) -> Answer:
        key = addresses.origin(url)
        if key in self._open:
            try:
                return self._send_on(self._open[key], method, url, headers)
            except Trouble:
                self._drop(key)  # the server had closed it meanwhile: not worth a try
        self._open[key] = _connect(url, self._timeout_s)
        try:
            return self._send_on(self._open[key], method, url, headers)
        except BaseException:
            self._drop(key)
            raise

    def _send_on(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        url: str,
        headers: Mapping[str, str],
    ) -> Answer:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        proxy = _proxy_of(url)
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
        if proxy and parts.scheme == "http":
            target = url
            sent |= _proxy_authorization(proxy)
        try:
            connection.request(method, target, headers=sent)
            response = connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            raise Failure("network", None, reason="tls", error=error.verify_message) from error
        except (OSError, http.client.HTTPException) as error:
            raise trouble_of(error) from error
        return Answer(response, url, lambda: self._drop(addresses.origin(url)))

    def _drop(self, key: tuple[str, str, int]) -> None:
        connection = self._open.pop(key, None)
        if connection is not None:
            connection.close()


def refuse(answer: Answer) -> None:
    """Raise what a status other than the wanted ones means."""
    status, said = answer.status, answer.headers.get("X-Error-Code", "")
    params = {"http_status": status} | ({"said": said[:100]} if said else {})
    if status in (404, 410) or said in _HUB_MISSING:
        raise Failure("not_found", None, **params)
    if status in (401, 403):
        raise Failure("auth", None, **params)
    if status in (408, 425, 429) or status >= 500:
        wait = backoff.retry_after(answer.headers.get("Retry-After"), time.time())
        raise Trouble("rate_limited" if status == 429 else "server", wait, http_status=status)
    raise Failure("bad_answer", None, reason="status", **params)


def trouble_of(error: Exception) -> Trouble:
    if isinstance(error, TimeoutError):
        return Trouble("timeout")
    if isinstance(error, socket.gaierror):
        return Trouble("name_not_resolved")
    if isinstance(error, ConnectionRefusedError):
        return Trouble("refused")
    if isinstance(error, http.client.IncompleteRead | ConnectionError | ssl.SSLError):
        return Trouble("cut")
    return Trouble("connection", error=type(error).__name__)


def _redirected(url: str, target: str) -> str:
    there = urljoin(url, target)
    scheme = urlsplit(there).scheme
    if scheme not in ("http", "https"):
        raise Failure("bad_answer", None, reason="redirect_scheme", scheme=scheme[:20])
    if scheme == "http" and urlsplit(url).scheme == "https":
        raise Failure("bad_answer", None, reason="redirect_insecure")
    address, _ = addresses.parse(there.partition("#")[0] + "#redirected")
    if not isinstance(address, addresses.WebAddress):
        raise Failure("bad_answer", None, reason="redirect_scheme", scheme=scheme)
    return address.url


def _connect(url: str, timeout_s: float) -> http.client.HTTPConnection:
    scheme, host, port = addresses.origin(url)
    proxy = _proxy_of(url)
    if proxy is not None:
        through = urlsplit(proxy)
        if through.scheme not in ("", "http") or not through.hostname:
            raise Failure("network", None, reason="proxy_scheme", scheme=through.scheme)
        there = through.hostname, through.port or 80
    else:
        there = host, port
    if scheme == "http":
        return http.client.HTTPConnection(*there, timeout=timeout_s)
    secure = http.client.HTTPSConnection(*there, timeout=timeout_s, context=_verifying())
    if proxy is not None:
        secure.set_tunnel(host, port, headers=_proxy_authorization(proxy))
    return secure


@functools.cache
def _verifying() -> ssl.SSLContext:
    return ssl.create_default_context()


def _proxy_of(url: str) -> str | None:
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Costs as much as everything else together, so only where it is needed.
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore

    scheme, host, port = addresses.origin(url)
    proxies = getproxies_environment()
    found = proxies.get(scheme) or proxies.get("all")
    if not found or proxy_bypass_environment(f"{host}:{port}", proxies):
        return None
    return found if "://" in found else f"http://{found}"


def _proxy_authorization(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    return {"Proxy-Authorization": basic(unquote(parts.username), unquote(parts.password or ""))}


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
