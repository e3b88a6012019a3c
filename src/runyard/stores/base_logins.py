"""The part of the store port that keeps who is logged in with a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LoginSession:
    """A browser that was let in by a key; it ends with the key."""

    session_id: int
    key_id: int
    name: str  # of the key
    role: str  # of the key
    created_at: float
    seen_at: float
    expires_at: float
    key_expires_at: float | None = None


class LoginReader(Protocol):
    def login_session(self, digest: str) -> LoginSession | None:
        """Also one that has expired; none whose key was revoked."""
        ...


class LoginTransaction(LoginReader, Protocol):
    def insert_login_session(self, digest: str, key_id: int, at: float, expires_at: float) -> bool:
        """False when there is no such key (any more)."""
        ...

    def extend_login_session(self, session_id: int, seen_at: float, expires_at: float) -> None: ...
    def delete_login_session(self, digest: str) -> bool: ...
    def forget_login_sessions(self, before: float) -> int:
        """Remove those that expired before; how many."""
        ...
