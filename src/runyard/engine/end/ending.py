"""News of attempts becomes state: started, ended, retried, released; then the next job starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runyard.domain import ending, events, retrying, states
from runyard.domain.events import Event
from runyard.domain.failures import diagnosis as diagnoses
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.alert import OF_AN_END, SERVICE_UNHEALTHY
from runyard.domain.reasons import Reason
from runyard.domain.recovery import plan as plans
from runyard.domain.recovery.plan import Plan
from runyard.domain.states import AttemptEnd, AttemptStatus, JobStatus, Stage
from runyard.engine import server_log
from runyard.engine.cancel import cancel_reasons, unasked_stops
from runyard.engine.end import end_files, receipts, recorded_ends
from runyard.engine.end.recorded_ends import Recorded
from runyard.engine.history import read_marks
from runyard.engine.launch.launching import Placed
from runyard.engine.parts import Parts
from runyard.engine.prepare import prefetch_plan
from runyard.engine.recover import cache_clearing, diagnosing, diverged, recovering
from runyard.engine.recover.diagnosing import Diagnoser
from runyard.engine.recover.recovering import Failure, Recovery
from runyard.engine.schedule import readiness, space_waits
from runyard.engine.schedule.placing import Placer
from runyard.engine.watch import alerting
from runyard.executors.base import End
from runyard.stores.base import Transaction

_ACTOR = "supervisor"
_OF_MACHINES = ending.LOST | {ending.NEVER_STARTED}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was worked out of an attempt's files before its end is recorded."""

    diagnosis: Diagnosis | None
    files_are_empty: bool


class Ender:
    def __init__(self, parts: Parts, placer: Placer, wake: Callable[[], None]) -> None:
        self._parts = parts
        self._placer = placer
        self._wake = wake
        self._diagnoser = Diagnoser(parts)
        self._recovery = Recovery(parts)
        # Brings up to date what a plan for this failure will count on.
        self.before_plan: Callable[[str, Diagnosis], None] = lambda _name, _diagnosis: None
        # Told of a job that waits for room on a disk, by the plan of its failed attempt.
        self.waits_for_space: Callable[[Recorded], None] = lambda _done: None
        # Called where attempts were lost or not started: machines may be gone with them.
        self.look_at_nodes: Callable[[], None] = lambda: None
        # Told of every attempt that ended, for whoever reads what it left.
        self.left: Callable[[Recorded], None] = lambda _done: None
        # Told of a job that completed after a plan had changed something.
        self.repaired: Callable[[Transaction, Job], None] = lambda _tx, _job: None

    def started(self, attempt_id: str, at: float) -> None:
        """The first process of an attempt runs. Not waited for: its end would tell it too."""
        self._parts.store.write_soon(lambda tx: _start(tx, attempt_id, at), durable=False)
        server_log.of(attempt_id.rpartition(".")[0], attempt_id).info("job started")

    def finishing(self, attempt_id: str) -> None:
        """Its main process has ended and what it left is being ended."""
        self._parts.store.write_soon(lambda tx: _finishing(tx, attempt_id), durable=False)

    def ended(self, ends: Sequence[tuple[str, End]]) -> tuple[list[Placed], list[Recorded]]:
        """Record ends, give back what they held, and place what fits now: one transaction."""
        now = self._parts.clock()
        # Somebody else may have waited for just this GPU, and be quicker than the next job.
        self._parts.machine.refresh_gpus(at_once=any("gpus" in end.receipt for _, end in ends))
        if any(end.cause in _OF_MACHINES for _, end in ends):
            self.look_at_nodes()
        empty = {name for name, _ in ends if end_files.are_empty(self._parts, name)}
        known = self._diagnoser.of_ends(ends, empty)
        failed = {name for name, end in ends if diagnosing.may_have_failed(end)}
        for name in failed & known.keys():
            self.before_plan(name, known[name])

        def work(tx: Transaction) -> tuple[list[Placed], list[Recorded]]:
            recorded = [
                done
                for name, end in ends
                if (done := self._end(tx, name, end, now, _Seen(known.get(name), name in empty)))
            ]
            return self._placer.place(tx, now), recorded

        placed, recorded = self._parts.store.write(work, exclusive=self._parts.store.shared)
        for done in recorded:
            recorded_ends.count(self._parts.tallies, done)
            if done.plan is not None and done.plan.clear:
                cache_clearing.clear(self._parts, done.job, done.plan.clear)
            if done.plan is not None and space_waits.is_wanted(done.plan):
                self.waits_for_space(done)
            self.left(done)
            if done.to in states.ENDED:
                prefetch_plan.drop_links(self._parts.settings, done.job)
        # The scheduling loop must know when a delay is over; other servers what is free.
        delayed = any(done.to is JobStatus.RETRYING for done in recorded)
        if self._parts.store.shared or delayed or self._placer.unfinished:
            self._wake()
        return placed, recorded

    def _end(
        self, tx: Transaction, attempt_id: str, end: End, now: float, seen: _Seen
    ) -> Recorded | None:
        attempt = tx.attempt(attempt_id)
        if attempt is None or attempt.status is AttemptStatus.ENDED:
            return None
        if self._parts.store.shared and attempt.node_id != self._parts.node_id:
            return None  # another server has taken it over, and hears of its end by itself
        job = tx.job(attempt.job_id)
        if job is None:
            return None
        current = job.attempt_number == attempt.number and job.status in states.ACTIVE
        # An attempt its job no longer knows of can only be closed.
        verdict = _judged(job, job.status if current else JobStatus.CANCELLING, end)
        _close(tx, job, attempt, end, verdict.end, now)
        wrote = not (seen.files_are_empty and end_files.tell_all(attempt, job.spec))
        if wrote:
            read_marks.note_end(tx, attempt_id)
        tx.release_grants(attempt_id)
        for machine, port in self._placer.refused_ports.note(attempt, end, seen.diagnosis, now):
            server_log.of(job.ref, attempt_id).warning("port {} of {} is avoided", port, machine)
        _close_alerts(tx, job, end, now)
        if not current:
            return None
        to, plan = self._move(tx, Failure(job, attempt, end, verdict, seen.diagnosis), now)
        cancelled = readiness.after_end(tx, job, now) if to in states.ENDED else []
        diagnosis = None if plan is None else seen.diagnosis
        return Recorded(job, attempt, to, end, cancelled, verdict.end, diagnosis, plan, wrote)

    def _move(
        self, tx: Transaction, failure: Failure, now: float
    ) -> tuple[JobStatus, Plan | None]:
        job, attempt, end, verdict = failure.job, failure.attempt, failure.end, failure.verdict
        status = job.status
        started = end.started_at or attempt.started_at
        if status is JobStatus.SCHEDULED and started is not None:
            _run(tx, job, attempt, started)
            status = JobStatus.RUNNING
        for step in verdict.through:
            event = _event(events.JOB_CANCELLING, attempt, end)
            tx.apply(states.move(job.id, status, step, event))
            status = step
        if verdict.to is JobStatus.COMPLETED:
            told = diverged.reason_of(failure.diagnosis)
            done = _Finish(JobStatus.COMPLETED, events.JOB_COMPLETED, told)
            _finish(tx, job, attempt, status, done, end)
            if told is not None and failure.diagnosis is not None:
                diverged.note(tx, job, attempt, failure.diagnosis, told, now)
            if job.retry_count and self._recovery.was_repaired(tx, job):
                self.repaired(tx, tx.job(job.id) or job)
            return done.to, None
        if verdict.to is JobStatus.CANCELLED:
            # Who asked is what the job already says.
            reason = verdict.reason or cancel_reasons.asked_for(job)
            done = _Finish(JobStatus.CANCELLED, events.JOB_CANCELLED, reason)
            return _finish(tx, job, attempt, status, done, end), None
        decided = self._recovery.decide(tx, failure)
        plan = decided.plan
        self._keep(tx, failure, plan, now)
        if not plan.retries:
            done = _Finish(JobStatus.FAILED, events.JOB_FAILED, decided.reason)
            return _finish(tx, job, attempt, status, done, end), plan
        _retry(tx, failure, status, plan, now)
        return JobStatus.RETRYING, plan

    def _keep(self, tx: Transaction, failure: Failure, plan: Plan, now: float) -> None:
        """With the attempt that failed: why, and what the next one does differently."""
        attempt, diagnosis = failure.attempt, failure.diagnosis
        tx.update_attempt(
            attempt.attempt_id,
            frozenset({AttemptStatus.ENDED}),
            diagnosis=None if diagnosis is None else diagnoses.as_mapping(diagnosis),
            plan=plans.as_mapping(plan),
        )
        if plan.fence:
            self._recovery.fence(tx, failure.job, attempt, plan, now)


def _judged(job: Job, status: JobStatus, end: End) -> ending.Verdict:
    verdict = ending.judge(
        status,
        code=end.code,
        signal=end.signal,
        cause=end.cause,
        stop_cause=(end.receipt.get("stop") or {}).get("cause"),
        detail=end.detail,
    )
    return replace(verdict, reason=unasked_stops.told(job, verdict.reason))


def _close(
    tx: Transaction, job: Job, attempt: Attempt, end: End, verdict: AttemptEnd, now: float
) -> None:
    tx.update_attempt(
        attempt.attempt_id,
        states.LIVE,
        status=AttemptStatus.ENDED,
        end=verdict,
        exit_code=end.code,
        signal=end.signal,
        cause=end.cause,
        started_at=end.started_at or attempt.started_at,
        ended_at=end.ended_at,
        receipt=receipts.of_attempt(attempt, job, end, now),
    )


def _close_alerts(tx: Transaction, job: Job, end: End, now: float) -> None:
    if job.spec.services:
        alerting.close_of_job_in(tx, job.id, (SERVICE_UNHEALTHY,), now, _ACTOR)
    if job.status is JobStatus.CANCELLING or end.receipt.get("was_stuck"):
        alerting.close_of_job_in(tx, job.id, OF_AN_END, now, _ACTOR)


@dataclass(frozen=True, slots=True)
class _Finish:
    to: JobStatus
    event: str
    reason: Reason | None


def _finish(
    tx: Transaction, job: Job, attempt: Attempt, status: JobStatus, done: _Finish, end: End
) -> JobStatus:
    changes: dict[str, Any] = {}
    if job.started_at is None and status is not JobStatus.RUNNING and end.started_at is not None:
        changes["started_at"] = end.started_at  # cancelled before its start was heard of
    if done.to is JobStatus.COMPLETED:
        changes["progress"] = 100.0
    tx.apply(
        states.move(
            job.id,
            status,
            done.to,
            _event(done.event, attempt, end),
            reason=done.reason,
            stage=None,
            ready=False,
            completed_at=end.ended_at,
            **changes,
        )
    )
    return done.to


def _retry(tx: Transaction, failure: Failure, status: JobStatus, plan: Plan, now: float) -> None:
    job, attempt = failure.job, failure.attempt
    delay = plan.delay_s
    if space_waits.is_wanted(plan):
        delay = max(delay, space_waits.LEAST_DELAY_S)
    due = now + delay
    waits = retrying.delay_reason(failure.verdict.reason, due, attempt.number)
    told: dict[str, Any] = {"delay_s": plan.delay_s, "plan": recovering.summary(plan)}
    if failure.diagnosis is not None:
        told["diagnosis"] = diagnosing.summary(failure.diagnosis)
    tx.apply(
        states.move(
            job.id,
            status,
            JobStatus.RETRYING,
            _event(events.JOB_RETRYING, attempt, failure.end, **told),
            reason=None if delay <= 0 else waits,
            stage=None,
            retry_count=job.retry_count + 1,
            charged=job.charged + int(plan.charged),
            ready=delay <= 0,
            not_before=due,
        )
    )


def _start(tx: Transaction, attempt_id: str, at: float) -> None:
    attempt = tx.attempt(attempt_id)
    if attempt is None or attempt.status is not AttemptStatus.STARTING:
        return
    job = tx.job(attempt.job_id)
    if job is None:
        return
    tx.update_attempt(
        attempt_id,
        frozenset({AttemptStatus.STARTING}),
        status=AttemptStatus.RUNNING,
        stage=Stage.RUNNING,
        started_at=at,
    )
    if job.status is JobStatus.SCHEDULED and job.attempt_number == attempt.number:
        _run(tx, job, attempt, at)


def _finishing(tx: Transaction, attempt_id: str) -> None:
    """Not of a job that is cancelling: its receipt tells where the request met it."""
    attempt = tx.attempt(attempt_id)
    job = tx.job(attempt.job_id) if attempt else None
    if attempt is None or attempt.status is not AttemptStatus.RUNNING or job is None:
        return
    if job.status is JobStatus.RUNNING and job.attempt_number == attempt.number:
        tx.update_attempt(attempt_id, states.LIVE, stage=Stage.FINISHING)
        tx.update_job(job.id, frozenset({JobStatus.RUNNING}), stage=Stage.FINISHING)


def _run(tx: Transaction, job: Job, attempt: Attempt, at: float) -> None:
    tx.apply(
        states.move(
            job.id,
            JobStatus.SCHEDULED,
            JobStatus.RUNNING,
            Event(events.JOB_STARTED, at, _ACTOR, attempt.attempt_id),
            stage=Stage.RUNNING,
            started_at=at,
        )
    )


def _event(code: str, attempt: Attempt, end: End, **params: object) -> Event:
    told = {"exit_code": end.code, "signal": end.signal, "cause": end.cause, **params}
    return Event(code, end.ended_at, _ACTOR, attempt.attempt_id, told)
