"""Stops that no person asked for, of a stall, a rule or a limit: the job stays running until its
end, and then fails or is retried."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain import events, reasons
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptStatus, JobStatus, Stage
from runyard.engine import server_log
from runyard.engine.parts import Parts
from runyard.executors.base import News, Stop
from runyard.stores.base import Transaction

_RUNS = frozenset({AttemptStatus.RUNNING})
_SUPERVISOR = "supervisor"
STOP = "stop"  # it ends as failed
RETRY = "retry"  # another attempt follows, as far as max_retries goes


@dataclass(frozen=True, slots=True)
class Why:
    """`then` is what follows the end; `rule` is the one that fired."""

    cause: str  # stall, rule
    by: str
    then: str = RETRY
    rule: str | None = None


def ask(
    tx: Transaction, job: Job, why: Why, grace_s: float | None, now: float
) -> tuple[Attempt, Stop] | None:
    """None when it does not run, or is being stopped already."""
    attempt = tx.attempt(job.attempt_id()) if job.attempt_number else None
    if job.status is not JobStatus.RUNNING or attempt is None or attempt.status not in _RUNS:
        return None
    grace = job.spec.grace_s if grace_s is None else grace_s
    seq = attempt.stop_seq + 1
    stopping, finishing = AttemptStatus.STOPPING, Stage.FINISHING
    tx.update_attempt(attempt.attempt_id, _RUNS, status=stopping, stage=finishing, stop_seq=seq)
    told = {"cause": why.cause, "then": why.then}
    if why.rule is not None:
        told["rule"] = why.rule
    event = Event(events.JOB_STOPPING, now, why.by, attempt.attempt_id, {**told, "grace_s": grace})
    tx.update_job(
        job.id,
        frozenset({JobStatus.RUNNING}),
        event,
        stage=finishing,
        reason=Reason(reasons.STOPPING, told),
    )
    return attempt, Stop(seq, why.cause, grace, why.by, now)


def heard(parts: Parts, news: News) -> None:
    """A supervisor has begun to stop its attempt: a time limit, a failed service, a memory limit.
    Not waited for: the end tells it too."""
    log = server_log.of(news.attempt_id.rpartition(".")[0], news.attempt_id)
    log.warning("stopping because of {}, grace {} s", news.cause, news.grace_s)
    parts.store.write_soon(lambda tx: _note(tx, news), durable=False)


def _note(tx: Transaction, news: News) -> None:
    attempt = tx.attempt(news.attempt_id)
    job = tx.job(attempt.job_id) if attempt is not None else None
    if attempt is None or attempt.status not in _RUNS or job is None:
        return
    if job.status is not JobStatus.RUNNING or job.attempt_number != attempt.number:
        return
    tx.update_attempt(
        attempt.attempt_id, _RUNS, status=AttemptStatus.STOPPING, stage=Stage.FINISHING
    )
    told = {"cause": news.cause, "grace_s": news.grace_s}
    tx.update_job(
        job.id,
        frozenset({JobStatus.RUNNING}),
        Event(events.JOB_STOPPING, news.at, _SUPERVISOR, attempt.attempt_id, told),
        stage=Stage.FINISHING,
        reason=Reason(reasons.STOPPING, {"cause": news.cause}),
    )


def told(job: Job, reason: Reason | None) -> Reason | None:
    """Why it ended: what it said while it was being stopped knows more than the end record."""
    same = reason is not None and reason.code == reasons.STOPPING and job.reason is not None
    return job.reason if same and _is_own(job) else reason


def is_final(job: Job, reason: Reason | None) -> bool:
    """Whether it was stopped so as not to be tried again."""
    stopped = reason is not None and reason.code == reasons.STOPPING
    return (
        stopped
        and _is_own(job)
        and job.reason is not None
        and (job.reason.params.get("then") == STOP)
    )


def _is_own(job: Job) -> bool:
    return job.reason is not None and job.reason.code == reasons.STOPPING
