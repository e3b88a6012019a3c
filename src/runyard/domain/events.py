"""What happened to a job: one row each, written in the same transaction as the change it tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Event codes. Past tense: each says that something happened.
JOB_SUBMITTED = "job_submitted"
JOB_SCHEDULED = "job_scheduled"
JOB_STARTED = "job_started"
JOB_COMPLETED = "job_completed"
JOB_FAILED = "job_failed"
JOB_RETRYING = "job_retrying"
JOB_RETRIED = "job_retried"  # by a person, after an end
JOB_CANCELLING = "job_cancelling"
JOB_CANCELLED = "job_cancelled"
JOB_FORCE_KILLED = "job_force_killed"  # the request; the end is job_cancelled
JOB_HELD = "job_held"
JOB_RELEASED = "job_released"
JOB_ENQUEUED = "job_enqueued"  # priority set, hold released
# An attempt goes on from it; params: path, step, attempt, passed_over
CHECKPOINT_CHOSEN = "checkpoint_chosen"
JOB_STOPPING = "job_stopping"
JOB_ADOPTED = "job_adopted"  # by a restarted server; params: attempt, pid
JOB_TAKEN_OVER = "job_taken_over"  # from a silent server; params: from, to, attempt
JOB_DELETED = "job_deleted"  # with all that was recorded of it; params: job
JOB_SWEPT = "job_swept"  # still cancelling after minutes: looked for and ended again
LEASE_LOST = "lease_lost"  # the client did not renew it
SERVICE_READY = "service_ready"  # a service of the job answers
SERVICE_EXITED = "service_exited"
SERVICE_UNHEALTHY = "service_unhealthy"  # it does not answer any more; nobody ends it for that
SERVICE_HEALTHY = "service_healthy"  # it answers again
PREPARATION_STARTED = "preparation_started"
DRILL_FAULT = "drill_fault"  # params: fault, attempt, progress, and what was done to what
PREPARATION_ENDED = "preparation_ended"
ALERT_OPENED = "alert_opened"
ALERT_ACKNOWLEDGED = "alert_acknowledged"
ALERT_CLOSED = "alert_closed"
QUEUE_STARTED = "queue_started"
QUEUE_STOPPED = "queue_stopped"
NODE_DRAINED = "node_drained"
NODE_UNDRAINED = "node_undrained"
GPU_FENCED = "gpu_fenced"
GPU_UNFENCED = "gpu_unfenced"


@dataclass(frozen=True, slots=True)
class Event:
    """`actor` is a key's name, or the part of the system that did it, such as "scheduler"."""

    code: str
    at: float
    actor: str
    attempt_id: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    id: int
    job_id: int | None
    job_ref: str | None
    event: Event
