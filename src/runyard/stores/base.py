"""The store port: where state is kept, and what every store promises.

Promises
- A `write` is one transaction: all of it is committed before the call returns, or none of it is.
  `durable=True` also survives a power cut (submit, placement, cancel, ends); `False` only kill -9.
- Every write of a status names the statuses it expects and raises `StaleWrite` when the row has
  another one by then; the whole transaction is rolled back.
- Events are rows of the same transaction. Subscribers hear of them after the commit, in order of
  id, each at least once; never of a transaction that was rolled back.
- A `read` sees one consistent snapshot and never waits for a writer.
- With several servers on one store, `exclusive=True` writes exclude each other over all servers.

Times are seconds since the epoch (floats). A store never decides anything: it keeps values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from runyard.domain.events import Event, StoredEvent
from runyard.domain.job import Attempt, Dependency, Job, NewJob, Priority
from runyard.domain.preparation import Preparation
from runyard.domain.reasons import Reason
from runyard.domain.resources import GpuGrant, Request
from runyard.domain.slices import Gang, Slice
from runyard.domain.states import AttemptStatus, JobStatus, Move
from runyard.stores.base_logins import LoginReader, LoginTransaction
from runyard.stores.base_machines import MachineReader, MachineTransaction
from runyard.stores.base_notifications import Happened
from runyard.stores.base_repair import RepairReader, RepairTransaction
from runyard.stores.base_watching import WatchReader, WatchTransaction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Empty fields match everything; `statuses`, `owners` and `job_types` match any of theirs."""

    statuses: tuple[JobStatus, ...] = ()
    job_types: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    text: str = ""  # part of the name, the description or the id
    labels: Mapping[str, str] = field(default_factory=dict)
    since: float | None = None  # submitted at or after
    ended_since: float | None = None  # ended at or after: only jobs that have ended
    array_id: str | None = None


JOB_ORDERS = ("submitted", "name", "status", "started", "ended", "progress", "owner")


@dataclass(frozen=True, slots=True)
class JobPage:
    jobs: tuple[Job, ...]  # newest first, unless another order was asked for
    next_cursor: str | None
    total: int


@dataclass(frozen=True, slots=True)
class WaitingShape:
    """Ready waiting jobs alike to the scheduler: same priority, needs, executor, array."""

    id: int
    priority: Priority
    request: Request
    executor: str
    array_id: str | None
    array_limit: int
    wait: Reason | None  # as the last pass wrote it
    gang: Gang | None  # of distributed jobs
    head_queued_at: float
    head_job_id: int


@dataclass(frozen=True, slots=True)
class WaitingJob:
    job_id: int
    ref: str
    shape_id: int
    queued_at: float
    attempt_number: int
    status: JobStatus


@dataclass(frozen=True, slots=True)
class ActiveAttempt:
    """What the scheduler needs to know of an attempt that has not ended."""

    attempt_id: str
    job_id: int
    machine_id: str
    node_id: str
    request: Request
    gpus: tuple[GpuGrant, ...]
    ports: tuple[int, ...]
    array_id: str | None
    started_at: float | None
    expected_s: float | None  # the job's time-out, when it has one
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    key_id: int
    name: str
    role: str  # admin, user, viewer
    prefix: str  # the first characters, for people to recognise it
    created_at: float
    last_used_at: float | None = None
    expires_at: float | None = None
    local: bool = False  # made by the server itself for this machine's CLI


@dataclass(frozen=True, slots=True)
class Lease:
    """What a client holds on its job; `expires_at` is by the store's clock."""

    job_id: int
    expires_at: float


class Reader(MachineReader, WatchReader, RepairReader, LoginReader, Protocol):
    """Reads inside one snapshot."""

    # jobs
    def job(self, ref: str | int) -> Job | None:
        """By public id, by numeric id, or by the digits of a numeric id."""
        ...

    def jobs(
        self,
        chosen: JobFilter,
        *,
        limit: int = 50,
        cursor: str | None = None,
        order: str = "-submitted",
    ) -> JobPage:
        """`order` is one of JOB_ORDERS, with `-` before it the other way round."""
        ...

    def count_jobs(self, chosen: JobFilter) -> dict[JobStatus, int]:
        """Its statuses are not looked at; one without jobs may be left out."""
        ...

    def jobs_by_id(self, ids: Sequence[int]) -> list[Job]:
        """In any order; ids without a job are left out."""
        ...

    def attempts_by_id(self, ids: Sequence[str]) -> dict[str, Attempt]:
        """Several attempts in one query; ids without one are left out."""
        ...

    def count_by_status(self) -> dict[JobStatus, int]: ...
    def dependencies(self, job_id: int) -> list[tuple[Dependency, str, JobStatus]]:
        """Each with the public id and the present status of the job depended on."""
        ...

    def dependents(self, job_id: int) -> list[tuple[int, Dependency]]:
        """Jobs that wait for this one: (their id, how)."""
        ...

    def events(
        self, job_id: int | None = None, *, after: int = 0, limit: int = 1000
    ) -> list[StoredEvent]: ...
    def last_event_id(self) -> int: ...

    # attempts
    def attempt(self, attempt_id: str) -> Attempt | None: ...
    def attempts(self, job_id: int) -> list[Attempt]:
        """First attempt first."""
        ...

    def live_attempts(self, node_id: str | None = None) -> list[Attempt]:
        """Those that have not ended."""
        ...

    # preparations
    def preparation(self, preparation_id: str) -> Preparation | None: ...
    def preparations(self, job_id: int) -> list[Preparation]:
        """First one first."""
        ...

    def live_preparations(self, node_id: str | None = None) -> list[Preparation]:
        """Those that have not ended."""
        ...

    def prepared_elsewhere(self, node_id: str) -> set[int]:
        """Ready jobs whose files were brought to another node."""
        ...

    def unprepared_jobs(self) -> list[Job]:
        """Waiting jobs that wait for their preparation, in order of queued_at."""
        ...

    # queue
    def waiting_shapes(self) -> list[WaitingShape]:
        """Shapes with at least one ready job. Its cost must not depend on how many jobs wait."""
        ...

    def ready_jobs(self, shape_id: int, limit: int) -> list[WaitingJob]:
        """In queue order: queued_at, then id."""
        ...

    def shape_wait(self, shape_id: int) -> Reason | None: ...
    def position(self, job: Job) -> int | None:
        """1 for the next in order (priority, queued_at, id) of ready jobs; None if not ready."""
        ...

    def waiting_ahead(self, job: Job, limit: int) -> list[WaitingJob]:
        """The ready jobs that come before this one in queue order, first come first."""
        ...

    def waiting_jobs(self, limit: int) -> list[Job]:
        """Waiting jobs, ready ones first in queue order, then those that are not ready."""
        ...

    def next_delayed(self) -> float | None:
        """The earliest `not_before` of a waiting job that is not ready."""
        ...

    def active_attempts(self) -> list[ActiveAttempt]: ...

    # leases
    def lease(self, job_id: int) -> Lease | None: ...
    def leases(self) -> list[Lease]: ...
    def expired_leases(self, now: float) -> list[Lease]:
        """Those that end at or before `now`, first one first."""
        ...

    def next_lease_end(self) -> float | None: ...

    # keys and settings
    def keys(self) -> list[Key]: ...
    def key_by_hash(self, digest: str) -> Key | None: ...
    def flag(self, name: str) -> str | None: ...
    def flags(self, prefix: str) -> dict[str, str]:
        """Those whose name begins so."""
        ...

    def idempotent(self, key_id: int, key: str) -> tuple[str, str] | None:
        """(hash of the body, stored answer) of a request made with this key."""
        ...


class Transaction(
    Reader, MachineTransaction, WatchTransaction, RepairTransaction, LoginTransaction, Protocol
):
    """Reads and writes inside one transaction."""

    # jobs
    def insert_jobs(self, jobs: Sequence[NewJob]) -> list[Job]:
        """With one `job_submitted` event each."""
        ...

    def apply(self, move: Move) -> None:
        """Change a status; StaleWrite when the job no longer has an expected one.

        `move.changes` may hold any of: stage, progress, retry_count, charged, attempt_number,
        ready, not_before, hold, queued_at, scheduled_at, started_at, completed_at.
        """
        ...

    def update_job(
        self,
        job_id: int,
        expect: frozenset[JobStatus],
        event: Event | None = None,
        **changes: Any,
    ) -> None:
        """Change anything but the status (also `reason`, `priority`); StaleWrite as above."""
        ...

    def delete_job(self, job_id: int) -> None:
        """With its attempts, events, labels and dependencies."""
        ...

    def append_event(self, job_id: int | None, event: Event) -> int: ...
    def wake_delayed(self, now: float) -> int:
        """Make ready what waited for a time that has come; returns how many."""
        ...

    # attempts
    def insert_attempt(self, attempt: Attempt) -> None:
        """With its grants: a row per GPU share and port of each machine it has a slice on, unique
        over all servers."""
        ...

    def update_attempt(
        self, attempt_id: str, expect: frozenset[AttemptStatus], **changes: Any
    ) -> None:
        """StaleWrite when its status is none of those expected."""
        ...

    def release_grants(self, attempt_id: str) -> None: ...

    # preparations
    def insert_preparation(self, preparation: Preparation) -> None: ...
    def update_preparation(
        self, preparation_id: str, expect: frozenset[AttemptStatus], **changes: Any
    ) -> None:
        """StaleWrite when its status is none of those expected."""
        ...

    # queue
    def set_shape_wait(self, shape_id: int, wait: Reason | None) -> None: ...

    # leases
    def put_lease(self, lease: Lease) -> None:
        """Insert or replace."""
        ...

    def drop_lease(self, job_id: int, *, expired_by: float | None = None) -> bool:
        """False if there is none, or if it lasts longer than `expired_by`."""
        ...

    # keys and settings
    def insert_key(self, key: Key, digest: str) -> Key: ...
    def revoke_key(self, key_id: int) -> bool: ...
    def touch_key(self, key_id: int, at: float) -> None: ...
    def set_flag(self, name: str, value: str | None) -> None: ...
    def put_idempotent(
        self, key_id: int, key: str, digest: str, answer: str, at: float
    ) -> None: ...

    # retention
    def forget_idempotent(self, before: float) -> int: ...
    def prune_shapes(self) -> int:
        """Remove shapes no job refers to."""
        ...


class Store(Protocol):
    """How a server reaches its state."""

    shared: bool  # several servers may use it at once

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,
    ) -> T:
        """Run `work` in one transaction and return its value after the commit.

        `work` may be run again after a conflict with another server: it must have no effects
        outside the transaction.
        """
        ...

    def write_soon(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,
    ) -> Future[T]:
        """The same without waiting."""
        ...

    def read(self) -> AbstractContextManager[Reader]: ...
    def before_commit(self, hook: Callable[[Transaction, Happened], None]) -> None:
        """`hook` is called at the end of the work of every transaction that ended a job or opened
        an alert; what it writes is committed with them."""
        ...

    def subscribe(self, hear: Callable[[Sequence[StoredEvent]], None]) -> None:
        """`hear` is called after each commit that appended events, by whichever server, from a
        thread of the store: it must be quick and must not write."""
        ...

    def wake_others(self, topic: str) -> None:
        """Tell the other servers of a shared store; nothing elsewhere. Topics: queue, stop."""
        ...

    def on_wake(self, hear: Callable[[str], None]) -> None: ...
    def now(self) -> float:
        """The clock that leases and heartbeats are judged by (a shared store's own)."""
        ...

    def backup(self, path: str) -> None:
        """A consistent copy while running; BadRequest where the database has its own tool."""
        ...

    def close(self) -> None: ...
