"""The states of jobs and attempts, and the one table of legal moves between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runyard.domain import errors
from runyard.domain.events import Event
from runyard.domain.reasons import Reason


class JobStatus(StrEnum):
    PENDING = "pending"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRYING = "retrying"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


class Stage(StrEnum):
    """How far a job or attempt has come inside its status."""

    PREFLIGHT = "preflight"
    PULL = "pull"
    PREFETCH = "prefetch"
    STARTING = "starting"
    RUNNING = "running"
    FINISHING = "finishing"


class AttemptStatus(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


class AttemptEnd(StrEnum):
    """How an attempt ended; why is its cause."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    NEVER_STARTED = "never_started"


LIVE = frozenset({AttemptStatus.STARTING, AttemptStatus.RUNNING, AttemptStatus.STOPPING})
WAITING = frozenset({JobStatus.PENDING, JobStatus.RETRYING})
ACTIVE = frozenset({JobStatus.SCHEDULED, JobStatus.RUNNING, JobStatus.CANCELLING})
ENDED = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})

MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset(
        # failed: its preparation found that it can never run
        {JobStatus.SCHEDULED, JobStatus.CANCELLING, JobStatus.CANCELLED, JobStatus.FAILED}
    ),
    JobStatus.SCHEDULED: frozenset(
        # pending: the placement was withdrawn before anything was started
        {
            JobStatus.RUNNING,
            JobStatus.PENDING,
            JobStatus.RETRYING,
            JobStatus.FAILED,
            JobStatus.CANCELLING,
        }
    ),
    JobStatus.RUNNING: frozenset(
        {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.RETRYING, JobStatus.CANCELLING}
    ),
    JobStatus.RETRYING: frozenset(
        {JobStatus.SCHEDULED, JobStatus.CANCELLING, JobStatus.CANCELLED, JobStatus.FAILED}
    ),
    JobStatus.CANCELLING: frozenset({JobStatus.CANCELLED}),
    JobStatus.COMPLETED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.CANCELLED: frozenset(),
}

# Ended jobs move again only when a person asks for it.
RETRY_MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    status: frozenset({JobStatus.PENDING}) for status in ENDED
}


@dataclass(frozen=True, slots=True)
class Move:
    """One change of a job's status: what it expects, what it writes, and the event that tells it.

    Made by `move` only, so that an illegal one cannot reach a store.
    """

    job_id: int
    expect: frozenset[JobStatus]
    to: JobStatus
    event: Event
    reason: Reason | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)


def move(
    job_id: int,
    expect: JobStatus | frozenset[JobStatus],
    to: JobStatus,
    event: Event,
    *,
    reason: Reason | None = None,
    by_retry: bool = False,
    **changes: Any,
) -> Move:
    """The one door: a Move if every expected status may legally become `to`, else IllegalMove."""
    expected = expect if isinstance(expect, frozenset) else frozenset({expect})
    table = RETRY_MOVES if by_retry else MOVES
    for status in expected:
        if to not in table.get(status, frozenset()):
            raise errors.IllegalMove(status=status.value, to=to.value)
    return Move(job_id, expected, to, event, reason, changes)
