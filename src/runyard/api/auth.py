"""Who asks: bearer keys, checked against the yard with a short memory."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections.abc import Callable

from anyio import CapacityLimiter
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from runyard.api.failed_logins import FailedLogins
from runyard.domain import errors
from runyard.engine.actor import Actor

_MEMORY_S = 2.0  # how long a revoked key may still open this server
_REMEMBERED = 1000
_LONGEST_KEY = 512
PROTOCOL = "runyard"
_KEY_PROTOCOL = "bearer."
_OPEN = frozenset({"/healthz", "/readyz"})
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
        secret = _bearer(scope)
        if secret is None:
            raise errors.Unauthenticated
        digest = hashlib.sha256(secret).digest()
        remembered = self._known.get(digest)
        if remembered is not None and remembered[0] > self._clock():
            actor = remembered[1]
        else:
            actor = await self._check(digest, secret)
        if actor is None:
            self._refuse(scope)
        return actor

    @staticmethod
    def key_of(scope: Scope) -> str:
        """The key it came with, to ask another server in its name; "" when it came without."""
        return (_bearer(scope) or b"").decode("latin-1")

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

    def _refuse(self, scope: Scope) -> None:
        address = (scope.get("client") or ("unknown", 0))[0]
        wait_s = self._failed.retry_after(address)
        if wait_s:
            raise errors.TooManyFailedLogins(address=address, retry_after_s=wait_s)
        self._failed.failed(address)
        raise errors.Unauthenticated


def _bearer(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, secret = value.partition(b" ")
            secret = secret.strip()
            if kind.lower() == b"bearer" and 0 < len(secret) <= _LONGEST_KEY:
                return bytes(secret)
            return None
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
