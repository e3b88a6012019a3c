"""A retry that a person asked for, inside its transaction: an ended job waits again."""

from __future__ import annotations

from runyard.domain import errors, events, preparation, retrying, states
from runyard.domain.events import Event
from runyard.domain.job import Job
from runyard.domain.reasons import Reason
from runyard.domain.states import JobStatus
from runyard.engine.launch import starts
from runyard.engine.schedule import readiness
from runyard.stores.base import Transaction


def check(tx: Transaction, job: Job) -> tuple[bool, Reason | None]:
    """Whether it is ready, and if not why; refused where it never could be."""
    if job.status not in states.ENDED:
        raise errors.NotEnded(job=job.ref, status=job.status.value)
    ready, reason = readiness.of_new(
        False, tx.dependencies(job.id), prepared=not preparation.needed(job.spec)
    )
    if reason is not None and readiness.is_broken(reason):
        raise errors.Conflict(
            f"Job {job.ref} depends on {reason.params.get('job')}, which did not succeed. "
            "Retry that one first.",
            **dict(reason.params),
        )
    return ready, reason


def begin(
    tx: Transaction,
    job: Job,
    waits: tuple[bool, Reason | None],
    *,
    by: str,
    now: float,
    fresh: bool,
    delay_s: float,
) -> None:
    """`waits` is what `check` said; `fresh` forgets what was changed for it after failures."""
    ready, reason = waits
    due = now + delay_s if delay_s > 0 else None
    if ready and due is not None:
        ready, reason = False, retrying.delay_reason(job.reason, due, job.attempt_number)
    again = job.attempt_number > 0
    if fresh and again:
        starts.forget_plans(tx, job)
    tx.apply(
        states.move(
            job.id,
            job.status,
            JobStatus.PENDING,
            Event(events.JOB_RETRIED, now, by, params={"fresh": fresh}),
            reason=reason,
            by_retry=True,
            stage=None,
            progress=0.0,
            retry_count=job.retry_count + int(again),
            charged=0,
            ready=ready,
            hold=False,
            not_before=due,
            queued_at=now,
            scheduled_at=None,
            started_at=None,
            completed_at=None,
        )
    )
