"""A cancel inside its transaction, by what there is of the job: nothing yet, a preparation under
way, or an attempt."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain import events, preparation, reasons, states
from runyard.domain.events import Event
from runyard.domain.job import Job
from runyard.domain.preparation import Preparation
from runyard.domain.states import AttemptStatus, JobStatus
from runyard.engine.cancel import cancel_reasons
from runyard.engine.schedule import readiness
from runyard.engine.units import Unit, unit_of
from runyard.executors.base import Stop
from runyard.stores.base import Transaction


@dataclass(frozen=True, slots=True)
class Cancel:
    """Who asked for it, why and when; with `force` there is no grace."""

    by: str
    cause: str
    at: float
    force: bool = False

    @property
    def event_code(self) -> str:
        return events.JOB_FORCE_KILLED if self.force else events.JOB_CANCELLING


@dataclass(frozen=True, slots=True)
class Asked:
    """A stop that has to be passed on."""

    unit: Unit
    stop: Stop


def of_waiting(tx: Transaction, job: Job, cancel: Cancel) -> list[Job]:
    """The jobs that depended on it and were cancelled with it."""
    tx.apply(
        states.move(
            job.id,
            job.status,
            JobStatus.CANCELLED,
            Event(events.JOB_CANCELLED, cancel.at, cancel.by, params={"cause": cancel.cause}),
            reason=cancel_reasons.asked_of(job, cancel.cause, cancel.by),
            ready=False,
            completed_at=cancel.at,
        )
    )
    return readiness.after_end(tx, job, cancel.at)


def of_active(tx: Transaction, job: Job, cancel: Cancel, leftover_s: float) -> Asked | None:
    """None when that was asked before. `leftover_s` is the grace of services without a main."""
    attempt = tx.attempt(job.attempt_id())
    assert attempt is not None  # an active job always has one
    if _is_asked_already(job, cancel):
        return None
    seq = attempt.stop_seq + 1
    tx.update_attempt(attempt.attempt_id, states.LIVE, status=AttemptStatus.STOPPING, stop_seq=seq)
    grace = 0.0 if cancel.force else job.spec.grace_s
    told = {"cause": cancel.cause, "grace_s": grace, "stage": job.stage and job.stage.value}
    event = Event(cancel.event_code, cancel.at, cancel.by, attempt.attempt_id, told)
    reason = cancel_reasons.waiting(cancel.cause, cancel.by, grace, cancel.at)
    if job.status is JobStatus.SCHEDULED and job.spec.services:
        reason = cancel_reasons.waiting(
            cancel.cause,
            cancel.by,
            min(grace, leftover_s),
            cancel.at,
            reasons.WAITING_FOR_SERVICES,
            services=[one.name for one in job.spec.services],
        )
    _write(tx, job, event, reason)
    return Asked(unit_of(attempt), Stop(seq, cancel.cause, grace, cancel.by, cancel.at))


def of_prepared(tx: Transaction, job: Job, living: Preparation, cancel: Cancel) -> Asked | None:
    """As above, for a job whose download or check is under way."""
    if _is_asked_already(job, cancel):
        return None
    seq = living.stop_seq + 1
    stopping = AttemptStatus.STOPPING
    tx.update_preparation(living.preparation_id, states.LIVE, status=stopping, stop_seq=seq)
    grace = 0.0 if cancel.force else preparation.GRACE_S
    told = {"cause": cancel.cause}
    event = Event(cancel.event_code, cancel.at, cancel.by, living.preparation_id, told)
    reason = cancel_reasons.waiting(
        cancel.cause,
        cancel.by,
        grace,
        cancel.at,
        reasons.WAITING_FOR_PREPARATION,
        stage=living.stage.value,
    )
    _write(tx, job, event, reason)
    return Asked(unit_of(living), Stop(seq, cancel.cause, grace, cancel.by, cancel.at))


def _is_asked_already(job: Job, cancel: Cancel) -> bool:
    return job.status is JobStatus.CANCELLING and not cancel.force


def _write(tx: Transaction, job: Job, event: Event, reason: reasons.Reason) -> None:
    """A force-kill of a job that is being cancelled only takes the rest of its grace."""
    if job.status is JobStatus.CANCELLING:
        hurried = cancel_reasons.hurried(job.reason, event.at)
        tx.update_job(job.id, frozenset({JobStatus.CANCELLING}), event, reason=hurried)
    else:
        tx.apply(states.move(job.id, job.status, JobStatus.CANCELLING, event, reason=reason))
