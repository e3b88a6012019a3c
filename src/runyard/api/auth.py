"""Who asks: bearer keys and the cookies of browsers, checked with a short memory."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable
from typing import NoReturn

from anyio import CapacityLimiter
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from runyard.api import session_cookie
from runyard.api.answers import BASE
from runyard.api.failed_logins import FailedLogins
from runyard.domain import errors
from runyard.engine.access.actor import Actor
from runyard.engine.access.logins import SESSION_PREFIX, csrf_of

_MEMORY_S = 2.0  # how long a revoked key may still open this server
_REMEMBERED = 1000
_LONGEST_KEY = 512
PROTOCOL = "runyard"
_KEY_PROTOCOL = "bearer."
_OPEN = frozenset({"/healthz", "/readyz"})
_LOGIN = f"{BASE}/session"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN_ON_LOOPBACK = frozenset({"/metrics", "/docs", "/openapi.json"})


class Auth:
    """Lives in the event loop; only a key not seen for two seconds costs a thread."""

    def __init__(
        self,
        authenticate: Callable[[str], Actor | None],
        failed: FailedLogins | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._authenticate = authenticate
        self._failed = failed or FailedLogins()
        self._clock = clock
        # Looked up by digest: how long that takes says nothing about the secret.
        self._known: dict[bytes, tuple[float, Actor | None]] = {}
        self._checks: CapacityLimiter | None = None

    async def identify(self, scope: Scope) -> Actor | None:
        """The actor; None where none is needed. Unauthenticated or TooManyFailedLogins else."""
        path = scope["path"]
        if path in _OPEN or (path in _OPEN_ON_LOOPBACK and is_local(scope)):
            return None
        if path == _LOGIN and scope.get("method") == "POST":
            return None  # it has to show a key of its own
        secret = _bearer(scope)
        if secret is not None:
            return await self._known_by(scope, secret)
        secret = session_cookie.read(scope)
        if secret is None or not secret.startswith(SESSION_PREFIX.encode()):
            raise errors.Unauthenticated
        actor = await self._known_by(scope, secret)
        _check_page(scope, secret)
        return actor

    async def log_in(self, scope: Scope, secret: bytes) -> Actor:
        """Who shows this key to log in; wrong ones are counted as everywhere."""
        if not 0 < len(secret) <= _LONGEST_KEY or secret.startswith(SESSION_PREFIX.encode()):
            self.refuse(scope)
        return await self._known_by(scope, secret)

    async def _known_by(self, scope: Scope, secret: bytes) -> Actor:
        digest = hashlib.sha256(secret).digest()
        remembered = self._known.get(digest)
        if remembered is not None and remembered[0] > self._clock():
            actor = remembered[1]
        else:
            actor = await self._check(digest, secret)
        if actor is None:
            if secret.startswith(SESSION_PREFIX.encode()):
                raise errors.Unauthenticated  # of an old tab: nobody guesses those
            self.refuse(scope)
        return actor

    @staticmethod
    def key_of(scope: Scope) -> str:
        """What it came with, to ask another server in its name; "" when it came without."""
        return (_bearer(scope) or session_cookie.read(scope) or b"").decode("latin-1")

    def forget(self) -> None:
        """After keys changed."""
        self._known.clear()

    async def _check(self, digest: bytes, secret: bytes) -> Actor | None:
        # A flood of wrong keys waits in this line, not in the threads that serve good ones.
        self._checks = self._checks or CapacityLimiter(2)
        async with self._checks:
            actor = await run_in_threadpool(self._authenticate, secret.decode("latin-1"))
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[digest] = (self._clock() + _MEMORY_S, actor)
        return actor

    def refuse(self, scope: Scope) -> NoReturn:
        """After a wrong key."""
        self.count_failure(scope)
        raise errors.Unauthenticated

    def count_failure(self, scope: Scope) -> None:
        """TooManyFailedLogins when it is one too many."""
        address = (scope.get("client") or ("unknown", 0))[0]
        wait_s = self._failed.retry_after(address)
        if wait_s:
            raise errors.TooManyFailedLogins(address=address, retry_after_s=wait_s)
        self._failed.failed(address)


def _check_page(scope: Scope, secret: bytes) -> None:
    """A browser sends its cookie whoever asks: only our own page knows the token, or is told by
    the browser to be ours where it opens a socket."""
    if scope["type"] == "websocket":
        if not session_cookie.header(scope, b"origin"):  # a wrong one was refused before
            raise errors.WrongOrigin(origin="an unknown site")
    elif scope["method"] not in _SAFE:
        told = session_cookie.header(scope, b"x-csrf-token").encode("latin-1")
        if not hmac.compare_digest(told, csrf_of(secret.decode("latin-1")).encode()):
            raise errors.WrongCsrfToken


def _bearer(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, secret = value.partition(b" ")
            secret = secret.strip()
            if kind.lower() == b"bearer" and 0 < len(secret) <= _LONGEST_KEY:
                return bytes(secret)
            break  # that of a proxy, perhaps
    return _from_subprotocol(scope)


def _from_subprotocol(scope: Scope) -> bytes | None:
    """A page cannot set headers of a WebSocket: it offers `runyard, bearer.KEY` as protocols."""
    for name in scope.get("subprotocols") or ():
        if name.startswith(_KEY_PROTOCOL):
            secret = name.removeprefix(_KEY_PROTOCOL).encode("latin-1")
            return secret if 0 < len(secret) <= _LONGEST_KEY else None
    return None


def subprotocol_of(scope: Scope) -> str | None:
    """The one to answer with, if any was offered; never the one that holds the key."""
    return PROTOCOL if PROTOCOL in (scope.get("subprotocols") or ()) else None


def is_local(scope: Scope) -> bool:
    """Whether the client itself is on this machine; behind a proxy nobody is."""
    if any(name in (b"x-forwarded-for", b"forwarded") for name, _ in scope["headers"]):
        return False
    client = scope.get("client")
    if not client:
        return False
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
