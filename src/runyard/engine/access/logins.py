"""Browsers that are logged in: a secret in a cookie, kept as a digest, that ends with its key.

And login links: a token for one use within minutes, which is never written anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from dataclasses import dataclass

from runyard.domain import errors
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.access.keys import digest_of
from runyard.engine.parts import Parts
from runyard.stores.base_logins import LoginSession

SESSION_PREFIX = "rys_"
_LINK_PREFIX = "ryl_"
LONGEST_S = 30 * 86400.0  # however often it is used
LINK_S = 600.0
_EXTENDED_EVERY_S = 300.0
_MOST_LINKS = 1000
_CSRF = b"runyard csrf"


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """What a browser gets: `secret` for its cookie, `csrf` for its page."""

    secret: str
    csrf: str
    actor: Actor
    expires_at: float


@dataclass(frozen=True, slots=True)
class LoginLink:
    token: str
    expires_at: float


def csrf_of(secret: str) -> str:
    """What a page must say with every change; nobody can work it out who has not the secret."""
    return hmac.new(secret.encode(), _CSRF, hashlib.sha256).hexdigest()


class Logins:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._links: dict[str, tuple[float, Actor]] = {}

    def log_in(self, actor: Actor) -> LoggedIn:
        """`actor` has shown a key; Unauthenticated when that was revoked meanwhile."""
        secret = SESSION_PREFIX + self._random()
        now = self._parts.clock()
        expires_at = now + self._idle_s()
        kept = self._parts.store.write(
            lambda tx: tx.insert_login_session(digest_of(secret), actor.key_id, now, expires_at)
        )
        if not kept:
            raise errors.Unauthenticated
        server_log.of().info("'{}' logged in with a browser", actor.name)
        return LoggedIn(secret, csrf_of(secret), actor, expires_at)

    def authenticate(self, secret: str) -> Actor | None:
        """None for a session that is unknown, ended or expired; a good one is extended."""
        found = self.find(secret)
        if found is None:
            return None
        now = self._parts.clock()
        if now - found.seen_at > min(_EXTENDED_EVERY_S, self._idle_s() / 10):
            until = min(now + self._idle_s(), found.created_at + LONGEST_S)
            session_id = found.session_id
            self._parts.store.write_soon(
                lambda tx: tx.extend_login_session(session_id, now, until), durable=False
            )
        return Actor(found.name, found.role, found.key_id)

    def find(self, secret: str) -> LoginSession | None:
        with self._parts.store.read() as reader:
            found = reader.login_session(digest_of(secret))
        if found is None:
            return None
        ends = [found.expires_at, found.created_at + LONGEST_S]
        if found.key_expires_at is not None:
            ends.append(found.key_expires_at)
        return found if self._parts.clock() < min(ends) else None

    def log_out(self, secret: str) -> None:
        self._parts.store.write(lambda tx: tx.delete_login_session(digest_of(secret)))

    def make_link(self, actor: Actor) -> LoginLink:
        """A token that lets one browser in as `actor`."""
        token = _LINK_PREFIX + self._random()
        now = self._parts.clock()
        link = LoginLink(token, now + LINK_S)
        with self._lock:
            for digest in [one for one, (until, _) in self._links.items() if until <= now]:
                del self._links[digest]
            while len(self._links) >= _MOST_LINKS:
                del self._links[next(iter(self._links))]
            self._links[digest_of(token)] = (link.expires_at, actor)
        return link

    def use_link(self, token: str) -> LoggedIn:
        """Unauthenticated when it was used before, is too old or was never made."""
        with self._lock:
            until, actor = self._links.pop(digest_of(token), (0.0, None))
        if actor is None or until <= self._parts.clock():
            raise errors.Unauthenticated(
                "This login link was used before or is too old: 'runyard open' makes a new one."
            )
        return self.log_in(actor)

    def _idle_s(self) -> float:
        return self._parts.settings.session_days * 86400.0

    def _random(self) -> str:
        return base64.urlsafe_b64encode(self._parts.random(32)).decode().rstrip("=")
