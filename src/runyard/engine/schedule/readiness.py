"""Whether a waiting job may be placed, and what becomes of jobs that wait for one that ended."""

from __future__ import annotations

from collections.abc import Iterable

from runyard.domain import dependencies, events, preparation, reasons, retrying, states
from runyard.domain.events import Event
from runyard.domain.job import Dependency, Job
from runyard.domain.preparation import Preparation
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptStatus, JobStatus
from runyard.engine import server_log
from runyard.engine.cancel import cancel_reasons
from runyard.stores.base import Reader, Transaction

_ACTOR = "scheduler"


def of_new(
    hold: bool,
    depends_on: Iterable[tuple[Dependency, str, JobStatus]],
    *,
    prepared: bool = True,
) -> tuple[bool, Reason | None]:
    """(ready, own reason) of a job that is about to wait; a reason with code dependency_failed
    means that it can never run."""
    waits_for = dependencies.readiness(depends_on)
    if waits_for is not None:
        return False, waits_for
    if hold:
        return False, Reason(reasons.HELD)
    if not prepared:
        return False, Reason(reasons.PREPARING)
    return True, None


def is_broken(reason: Reason | None) -> bool:
    return reason is not None and reason.code == reasons.DEPENDENCY_FAILED


def is_prepared(tx: Transaction, job: Job) -> bool:
    """Whether all that must be here before it starts was brought since somebody asked for it."""
    if not preparation.needed(job.spec):
        return True
    return preparation.missing(job.spec, tx.preparations(job.id), job.queued_at) is None


def living_preparation(reader: Reader, job: Job) -> Preparation | None:
    """The preparation of this job that has not ended."""
    if not preparation.needed(job.spec):
        return None
    return next((one for one in reader.preparations(job.id) if one.status in states.LIVE), None)


def refresh(tx: Transaction, job: Job, *, hold: bool, now: float) -> tuple[bool, Reason | None]:
    """(ready, own reason) of a waiting job as it stands now."""
    ready, reason = of_new(hold, tx.dependencies(job.id), prepared=is_prepared(tx, job))
    if reason is not None and reason.code == reasons.PREPARING:
        living = living_preparation(tx, job)
        return False, preparation.under_way(living) if living else reason
    if ready and job.not_before is not None and job.not_before > now:
        return False, retrying.delay_reason(None, job.not_before, job.attempt_number)
    return ready, reason


def after_end(tx: Transaction, job: Job, now: float) -> list[Job]:
    """The job has ended: its client owes nothing any more; what waited for it is released, what
    can no longer run is cancelled, all the way down. The jobs that were cancelled."""
    if job.spec.lease is not None:
        tx.drop_lease(job.id)
    todo = [job.id]
    cancelled = []
    while todo:
        ended = todo.pop()
        for dependent_id, _ in tx.dependents(ended):
            broken = _settle_one(tx, dependent_id, now)
            if broken is not None:
                todo.append(dependent_id)
                cancelled.append(broken)
    return cancelled


def tell_cancelled(jobs: Iterable[Job], because_of: str) -> None:
    """For the log, once it is committed."""
    for job in jobs:
        server_log.of(job.ref).info(
            "job cancelled before starting: {} did not succeed", because_of
        )


def _settle_one(tx: Transaction, job_id: int, now: float) -> Job | None:
    """The job when it was cancelled."""
    job = tx.job(job_id)
    if job is None or job.status not in states.WAITING:
        return None
    ready, reason = refresh(tx, job, hold=job.hold, now=now)
    if is_broken(reason):
        assert reason is not None
        living = living_preparation(tx, job)
        if living is not None:
            _end_preparation(tx, job, living, reason, now)
            return None
        tx.apply(
            states.move(
                job.id,
                job.status,
                JobStatus.CANCELLED,
                Event(events.JOB_CANCELLED, now, _ACTOR, params=dict(reason.params)),
                reason=reason,
                stage=None,
                ready=False,
                completed_at=now,
            )
        )
        if job.spec.lease is not None:
            tx.drop_lease(job.id)
        return job
    if (ready, reason) != (job.ready, job.reason):
        tx.update_job(job.id, frozenset({job.status}), ready=ready, reason=reason)
    return None


def _end_preparation(
    tx: Transaction, job: Job, living: Preparation, reason: Reason, now: float
) -> None:
    """It can never run, but its download lives: cancelling until that is proven gone. The loop of
    preparations passes the request on."""
    seq = living.stop_seq + 1
    stopping = AttemptStatus.STOPPING
    tx.update_preparation(living.preparation_id, states.LIVE, status=stopping, stop_seq=seq)
    event = Event(events.JOB_CANCELLING, now, _ACTOR, living.preparation_id, dict(reason.params))
    waits = cancel_reasons.waiting(
        cancel_reasons.DEPENDENCY,
        _ACTOR,
        preparation.GRACE_S,
        now,
        reasons.WAITING_FOR_PREPARATION,
        stage=living.stage.value,
        broken=dict(reason.params),
    )
    tx.apply(states.move(job.id, job.status, JobStatus.CANCELLING, event, reason=waits))
