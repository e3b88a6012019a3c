"""The yard: everything people can ask of a running server. The API and the embedding classes use it.

Synchronous; every call may touch the store. Errors are those of domain/errors.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt, Job, Priority, Submission
from runyard.domain.reasons import Reason
from runyard.engine.hub import Hub
from runyard.stores.base import JobFilter, JobPage, Key, Node


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: a key. Role user acts on its own jobs, viewer only reads, admin may do all."""

    name: str
    role: str  # admin, user, viewer
    key_id: int = 0


@dataclass(frozen=True, slots=True)
class Idempotency:
    key: str
    digest: str  # hash of the body


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a job waits, its place, and when it may start."""

    reason: Reason
    position: int | None
    est_start_low: float | None
    est_start_high: float | None
    blockers: tuple[str, ...]  # public ids


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with what is worked out when it is read."""

    job: Job
    reason: Reason | None  # the job's own, or its shape's while it is ready and waits
    attempt: Attempt | None  # the newest
    depends_on: tuple[tuple[str, str], ...]  # (public id, on)
    wait: Wait | None


@dataclass(frozen=True, slots=True)
class QueueStatus:
    dispatching: bool
    max_concurrent: int
    counts: dict[str, int]  # jobs by status
    waiting: tuple[JobView, ...]  # first in order, at most `limit`
    running: tuple[JobView, ...]
    gates: tuple[dict[str, Any], ...]  # {name, value, limit, closed}


@dataclass(frozen=True, slots=True)
class GpuView:
    node_id: str
    index: int
    uuid: str
    name: str
    memory_mb: int
    used_mb: int | None
    group: str
    fenced: bool
    fence_reason: str | None
    locked_by_other_server: bool
    holders: tuple[dict[str, Any], ...]  # processes that are not ours
    jobs: tuple[dict[str, Any], ...]  # {job_id, attempt_id, share}


class Yard:
    hub: Hub

    # jobs
    def submit(
        self,
        submissions: Sequence[Submission],
        actor: Actor,
        idempotency: Idempotency | None = None,
    ) -> list[Job]:
        """All or none. A repeated idempotency key answers with the jobs of the first request."""
        raise NotImplementedError

    def job(self, ref: str) -> JobView:
        raise NotImplementedError

    def jobs(self, chosen: JobFilter, limit: int, cursor: str | None) -> tuple[JobPage, list[JobView]]:
        """The views of a page hold reason and attempt, but no position and no estimate."""
        raise NotImplementedError

    def attempts(self, ref: str) -> list[Attempt]:
        raise NotImplementedError

    def events(self, ref: str, after: int = 0, limit: int = 1000) -> list[StoredEvent]:
        raise NotImplementedError

    def receipt(self, ref: str) -> dict[str, Any]:
        """Of the newest attempt that ended; NotFound before."""
        raise NotImplementedError

    def explain(self, ref: str) -> dict[str, Any]:
        """Waiting: reason, place, blockers. Ended: reason, cause, proving log lines."""
        raise NotImplementedError

    def cancel(self, ref: str, actor: Actor, *, force: bool = False) -> Job:
        """Ask for the end and return the job as it is then: cancelled, or cancelling. Asking again
        is no error; AlreadyEnded when it completed or failed."""
        raise NotImplementedError

    def retry(self, ref: str, actor: Actor, *, fresh: bool = False) -> Job:
        raise NotImplementedError

    def hold(self, ref: str, actor: Actor) -> Job:
        raise NotImplementedError

    def release(self, ref: str, actor: Actor) -> Job:
        raise NotImplementedError

    def enqueue(self, ref: str, actor: Actor, priority: Priority | None = None) -> Job:
        """Release a hold and set the priority; AlreadyEnded on an ended job."""
        raise NotImplementedError

    def delete(self, ref: str, actor: Actor) -> None:
        """Record, folders and logs of an ended job; NotEnded otherwise."""
        raise NotImplementedError

    def log_path(self, ref: str, attempt: int | None = None, rank: int = 0) -> tuple[str, bool]:
        """The log file of an attempt (the newest by default) and whether that attempt has ended."""
        raise NotImplementedError

    def node_url_of(self, ref: str) -> str | None:
        """The URL of the server that owns the job's newest attempt; None when it is this one."""
        raise NotImplementedError

    # queue and machines
    def queue_status(self, limit: int = 100) -> QueueStatus:
        raise NotImplementedError

    def start_queue(self, actor: Actor) -> None:
        raise NotImplementedError

    def stop_queue(self, actor: Actor) -> None:
        raise NotImplementedError

    def nodes(self) -> list[Node]:
        raise NotImplementedError

    def drain(self, node_id: str, actor: Actor) -> Node:
        raise NotImplementedError

    def undrain(self, node_id: str, actor: Actor) -> Node:
        raise NotImplementedError

    def gpus(self) -> list[GpuView]:
        raise NotImplementedError

    def fence(self, gpu: str, reason: str, actor: Actor) -> GpuView:
        """`gpu` is an index of this node or a uuid."""
        raise NotImplementedError

    def unfence(self, gpu: str, actor: Actor) -> GpuView:
        raise NotImplementedError

    # keys
    def authenticate(self, secret: str) -> Actor | None:
        """None for a key that is unknown, revoked or expired."""
        raise NotImplementedError

    def keys(self) -> list[Key]:
        raise NotImplementedError

    def create_key(
        self, name: str, role: str, actor: Actor, expires_at: float | None = None
    ) -> tuple[Key, str]:
        """The key and its secret, which is never shown again."""
        raise NotImplementedError

    def revoke_key(self, key_id: int, actor: Actor) -> None:
        raise NotImplementedError

    # system
    def health(self) -> dict[str, Any]:
        """{ok, version, store, keeper, dispatching ...}; ok is False when jobs cannot be started."""
        raise NotImplementedError
