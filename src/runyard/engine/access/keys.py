"""API keys: 32 random bytes shown once, kept only as a digest."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import threading
from pathlib import Path

from runyard.domain import errors
from runyard.engine import server_log
from runyard.engine.access.actor import ROLES, Actor
from runyard.engine.parts import Parts
from runyard.stores.base import Key, Transaction

_PREFIX = "ry_"
_SHOWN = 10
# Another server of a shared database may revoke a key: an answer is not trusted longer than this.
_CACHE_S = 5.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_LOCAL_NAME = "local"
_TRIES = 10


def digest_of(secret: str) -> str:
    # A 256-bit random key needs no slow hash; a slow one on every request would be an outage.
    return hashlib.sha256(secret.encode()).hexdigest()


class Keys:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, Actor]] = {}

    def authenticate(self, secret: str) -> Actor | None:
        """None for a key that is unknown, revoked or expired."""
        digest = digest_of(secret)
        now = self._parts.clock()
        with self._lock:
            known = self._seen.get(digest)
        if known and now - known[0] < _CACHE_S:
            return known[1]
        with self._parts.store.read() as reader:
            key = reader.key_by_hash(digest)
        if key is None or (key.expires_at is not None and key.expires_at <= now):
            with self._lock:
                self._seen.pop(digest, None)
            return None
        actor = Actor(key.name, key.role, key.key_id)
        with self._lock:
            self._seen[digest] = (now, actor)
        if key.last_used_at is None or now - key.last_used_at > 60:
            self._parts.store.write_soon(lambda tx: tx.touch_key(key.key_id, now), durable=False)
        return actor

    def all(self) -> list[Key]:
        with self._parts.store.read() as reader:
            return reader.keys()

    def create(
        self, name: str, role: str, *, expires_at: float | None = None, local: bool = False
    ) -> tuple[Key, str]:
        if not _NAME.fullmatch(name):
            raise errors.BadRequest(
                "A key's name is 1 to 64 letters, digits, '.', '_', '@' or '-', "
                "and begins with a letter or digit.",
                field="name",
            )
        if role not in ROLES:
            raise errors.BadRequest(f"A role is one of {', '.join(ROLES)}.", field="role")
        secret = _PREFIX + base64.urlsafe_b64encode(self._parts.random(32)).decode().rstrip("=")
        now = self._parts.clock()
        if expires_at is not None and expires_at <= now:
            raise errors.BadRequest("The key would have expired already.", field="expires_at")

        def insert(tx: Transaction) -> Key:
            if name in {key.name for key in tx.keys()}:  # noqa: SIM118 (no mapping)
                raise errors.Conflict(f"There is a key named '{name}' already.", name=name)
            key = Key(0, name, role, secret[:_SHOWN], now, None, expires_at, local)
            return tx.insert_key(key, digest_of(secret))

        key = self._parts.store.write(insert)
        server_log.of().info("key '{}' created with role {}", name, role)
        return key, secret

    def revoke(self, key_id: int) -> None:
        if not self._parts.store.write(lambda tx: tx.revoke_key(key_id)):
            raise errors.NotFound(f"There is no key {key_id}.", key_id=key_id)
        with self._lock:
            self._seen.clear()
        server_log.of().info("key {} revoked", key_id)

    def made_by_people(self) -> bool:
        return any(not key.local for key in self.all())

    def ensure_local(self, folder: Path) -> str:
        """The admin key of this machine's own CLI, in `admin.key`; made anew when it is missing or
        no longer opens the store (another database, a revoked key)."""
        path = folder / "admin.key"
        try:
            secret = path.read_text().strip()
        except OSError:
            secret = ""
        if secret and (actor := self.authenticate(secret)) and actor.role == "admin":
            return secret
        secret = self._create_local()
        _write_private(path, secret + "\n")
        return secret

    def _create_local(self) -> str:
        """Servers of one database that start at the same moment may want the same name."""
        for _ in range(_TRIES):
            try:
                return self.create(self._free_local_name(), "admin", local=True)[1]
            except errors.Conflict:
                continue
        return self.create(self._free_local_name(), "admin", local=True)[1]

    def _free_local_name(self) -> str:
        taken = {key.name for key in self.all()}
        number = 1
        name = _LOCAL_NAME
        while name in taken:
            number += 1
            name = f"{_LOCAL_NAME}-{number}"
        return name


def _write_private(path: Path, text: str) -> None:
    """Appears whole, and is never readable for others, not even for a moment."""
    aside = path.with_name(path.name + ".new")
    aside.unlink(missing_ok=True)
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(aside, path)
