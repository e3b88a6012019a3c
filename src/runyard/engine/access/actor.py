"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain import errors
from runyard.domain.job import Job

ROLES = ("admin", "user", "viewer")


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: a key. Role user acts on its own jobs, viewer only reads, admin may do all."""

    name: str
    role: str  # admin, user, viewer
    key_id: int = 0

    def must_be_admin(self) -> None:
        if self.role != "admin":
            raise errors.Forbidden(name=self.name, role=self.role)

    def must_submit(self) -> None:
        if self.role == "viewer":
            raise errors.Forbidden(name=self.name, role=self.role)

    def must_own(self, job: Job) -> None:
        if self.role == "admin" or (self.role == "user" and job.owner == self.name):
            return
        raise errors.Forbidden(name=self.name, role=self.role)


SYSTEM = Actor("system", "admin")
