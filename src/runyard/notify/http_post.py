"""One POST to an address somebody gave: checked, bounded in time and size, never led elsewhere."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit

from runyard import __version__
from runyard.domain import notifications
from runyard.notify.base import TIMEOUT_S, Undelivered

USER_AGENT = f"Runyard/{__version__}"
_MOST_READ = 64 * 1024
_MOST_HOPS = 3
_SAME_AGAIN = (307, 308)  # the only redirects that ask for the same POST once more
_LONGEST_WISH_S = 3600.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    retry_after_s: float = 0.0


def post(
    url: str, body: bytes, headers: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> Answer:
    """The answer, whatever its status but a redirect; a redirect within the same scheme, host and
    port is followed."""
    deadline = time.monotonic() + timeout_s
    for _ in range(_MOST_HOPS + 1):
        answer, leads_to = _post_once(url, body, headers, deadline, timeout_s)
        if not 300 <= answer.status < 400:
            return answer
        further = _joined(url, leads_to)
        if answer.status not in _SAME_AGAIN or _origin(further) != _origin(url):
            break
        url = further
    raise Undelivered(notifications.REDIRECTED, status=answer.status)


def succeed(answer: Answer) -> None:
    """Undelivered unless the answer is 2xx."""
    if not 200 <= answer.status < 300:
        raise Undelivered(
            notifications.HTTP_STATUS, wished_s=answer.retry_after_s, status=answer.status
        )


def _post_once(
    url: str, body: bytes, headers: Mapping[str, str], deadline: float, timeout_s: float
) -> tuple[Answer, str]:
    parts = _parts(url)
    connection: http.client.HTTPConnection | None = None
    watch: threading.Timer | None = None
    try:
        connection = _connect(parts, deadline)
        # The socket's own time-out is for one read: a drip of bytes could go on for ever.
        watch = threading.Timer(max(0.0, deadline - time.monotonic()), _cut, [connection.sock])
        watch.daemon = True
        watch.start()
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, {"User-Agent": USER_AGENT, **headers})
        reply = connection.getresponse()
        answer = Answer(reply.status, reply.read(_MOST_READ), _wish(reply))
        return answer, reply.headers.get("Location", "")
    except TimeoutError:
        raise Undelivered(notifications.NO_ANSWER, seconds=timeout_s) from None
    except ssl.SSLCertVerificationError as error:
        raise Undelivered(notifications.BAD_CERTIFICATE, why=error.verify_message) from None
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= deadline:
            raise Undelivered(notifications.NO_ANSWER, seconds=timeout_s) from None
        raise Undelivered(notifications.UNREACHABLE, why=_why(error)) from None
    except ValueError:  # a path or host that no request can hold
        raise Undelivered(notifications.BAD_ADDRESS, again=False) from None
    finally:
        if watch is not None:
            watch.cancel()
        if connection is not None:
            connection.close()


def _connect(parts: SplitResult, deadline: float) -> http.client.HTTPConnection:
    """To an address that was looked at first, so that a name cannot lead to a refused one."""
    host, secure = parts.hostname or "", parts.scheme.lower() == "https"
    port = parts.port or (443 if secure else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if any(notifications.is_refused(address) for address in addresses):
        raise Undelivered(notifications.ADDRESS_REFUSED, again=False)
    plain = _first_that_answers(addresses, port, deadline)
    connection: http.client.HTTPConnection
    try:
        if secure:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, context=context)
            connection.sock = context.wrap_socket(plain, server_hostname=host)
        else:
            connection = http.client.HTTPConnection(host, port)
            connection.sock = plain
    except BaseException:
        plain.close()
        raise
    return connection


def _first_that_answers(addresses: list[str], port: int, deadline: float) -> socket.socket:
    failed: OSError = OSError("no address")
    for address in addresses:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            return socket.create_connection((address, port), timeout=left)
        except OSError as error:
            failed = error
    raise failed


def _cut(plain: socket.socket | None) -> None:
    if plain is not None:
        try:
            plain.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it is over already


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise Undelivered(notifications.BAD_ADDRESS, again=False) from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise Undelivered(notifications.BAD_ADDRESS, again=False)
    return parts


def _joined(url: str, leads_to: str) -> str:
    try:
        return urljoin(url, leads_to)
    except ValueError:
        return ""


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port
    except ValueError:
        return "", None, None


def _wish(reply: http.client.HTTPResponse) -> float:
    """Retry-After in seconds; a date is not worth the trouble."""
    text = reply.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_WISH_S) if text.isascii() and text.isdigit() else 0.0


def _why(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "the name is not known"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
