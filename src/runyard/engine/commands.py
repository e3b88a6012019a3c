"""What people can ask of a job after its submit: cancel, retry, hold, release, enqueue, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from runyard.domain import errors, events, preparation, reasons, retrying, states
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job, Priority
from runyard.domain.preparation import Preparation
from runyard.domain.states import AttemptStatus, JobStatus
from runyard.engine import cancel_reasons, prefetch_plan, readiness, starts, story, unasked_stops
from runyard.engine.actor import Actor
from runyard.engine.parts import Parts
from runyard.executors.base import Stop
from runyard.stores.base import Reader, Transaction

PREPARED_BY = "local"  # the executor that runs preparations
_TRIES = 5

T = TypeVar("T")
Change = Callable[[Transaction, Job, float], None]
Keep = Callable[[Transaction, Job], None]
Guard = Callable[[Transaction, Job], bool]


def _always(tx: Transaction, job: Job) -> bool:  # noqa: ARG001
    return True


def _nothing(tx: Transaction, job: Job) -> None:
    pass


def find(reader: Reader, ref: str | int) -> Job:
    job = reader.job(ref)
    if job is None:
        raise errors.JobNotFound(job=str(ref))
    return job


@dataclass(frozen=True, slots=True)
class Unit:
    """What runs under a supervisor of its own: an attempt, or the preparation of a job."""

    name: str
    node_id: str
    executor: str


def unit_of(found: Attempt | Preparation) -> Unit:
    if isinstance(found, Attempt):
        return Unit(found.attempt_id, found.node_id, found.executor)
    return Unit(found.preparation_id, found.node_id, PREPARED_BY)


class Commands:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # Told of an own attempt that is about to be asked to end.
        self.before_stop: Callable[[str], None] = lambda _attempt_id: None

    def cancel(self, ref: str, actor: Actor, *, force: bool = False, cause: str = "user") -> Job:
        """Ask for the end; the job comes back cancelled, or cancelling until it is proven gone."""
        return self._cancel(ref, actor, force, cause, _always)[0]

    def cancel_if(self, ref: str, actor: Actor, cause: str, guard: Guard) -> bool:
        """Cancel it if `guard`, asked in the same transaction, agrees; whether it did."""
        return self._cancel(ref, actor, False, cause, guard)[1]

    def _cancel(
        self, ref: str, actor: Actor, force: bool, cause: str, guard: Guard
    ) -> tuple[Job, bool]:
        now = self._parts.clock()

        def work(tx: Transaction) -> tuple[Job, _Asked | list[Job] | None]:
            job = find(tx, ref)
            actor.must_own(job)
            if not guard(tx, job):
                return job, None
            if job.status in (JobStatus.COMPLETED, JobStatus.FAILED):
                raise errors.AlreadyEnded(job=job.ref, status=job.status.value)
            if job.status is JobStatus.CANCELLED:
                return job, None
            if (living := readiness.living_preparation(tx, job)) is not None:
                asked = _cancel_prepared(tx, job, living, actor, force, cause, now)
                return find(tx, job.id), asked
            if job.status in states.WAITING:
                dependents = _cancel_waiting(tx, job, actor, cause, now)
                return find(tx, job.id), dependents
            leftover_s = self._parts.settings.leftover_grace_s
            asked = _cancel_active(tx, job, actor, force, cause, now, leftover_s)
            return find(tx, job.id), asked

        job, done = self._again_if_stale(work)
        if isinstance(done, list):
            story.of(job.ref).info("job cancelled before starting, asked by {}", actor.name)
            prefetch_plan.drop_links(self._parts.settings, job)
            readiness.tell_cancelled(done, job.ref)
        elif done is not None:
            word = "force-kill" if force else "cancel"
            log = story.of(job.ref, done.unit.name)
            stage = job.stage.value if job.stage else "waiting"
            words = "{} asked by {}, grace {} s, while {}"
            log.info(words, word, actor.name, done.stop.grace_s, stage)
            self.pass_on(done.unit, done.stop)
        return job, done is not None

    def stop(self, ref: str, why: unasked_stops.Why, grace_s: float | None = None) -> bool:
        """End what runs although no person asked; it fails or is retried. False when it does not
        run, or is being stopped already."""
        now = self._parts.clock()

        def work(tx: Transaction) -> tuple[Attempt, Stop] | None:
            return unasked_stops.ask(tx, find(tx, ref), why, grace_s, now)

        asked = self._again_if_stale(work)
        if asked is None:
            return False
        attempt, stop = asked
        words = "stopping because of {} (by {}), grace {} s, then {}"
        log = story.of(ref, attempt.attempt_id)
        log.warning(words, why.cause, why.by, stop.grace_s, why.then)
        self.pass_on(unit_of(attempt), stop)
        return True

    def _again_if_stale(self, work: Callable[[Transaction], T]) -> T:
        """With several servers the job may move between our look and our write: look again."""
        for _ in range(_TRIES):
            try:
                return self._parts.store.write(work)
            except errors.StaleWrite:
                continue
        return self._parts.store.write(work)

    def pass_on(self, unit: Unit, stop: Stop) -> None:
        """Tell the executor, if the unit is this node's; else its own server."""
        if self._parts.store.shared and unit.node_id != self._parts.node_id:
            self._parts.store.wake_others("stop")
            return
        self.before_stop(unit.name)
        try:
            self._parts.executors[unit.executor].stop(unit.name, stop)
        except OSError as error:
            # The request is committed, so it is not lost: reconcile repeats it.
            log = story.of(unit.name.rpartition(".")[0], unit.name)
            log.error("the stop request could not be passed on yet: {}", error)

    def retry(
        self,
        ref: str,
        actor: Actor,
        *,
        fresh: bool = False,
        keep: Keep = _nothing,
        delay_s: float = 0.0,
    ) -> Job:
        """`keep` is called in the same transaction, before the job moves."""
        now = self._parts.clock()

        def work(tx: Transaction) -> Job:
            job = find(tx, ref)
            actor.must_own(job)
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
            keep(tx, job)
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
                    Event(events.JOB_RETRIED, now, actor.name, params={"fresh": fresh}),
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
            return find(tx, job.id)

        job = self._again_if_stale(work)
        story.of(job.ref).info("retry asked by {}", actor.name)
        return job

    def hold(self, ref: str, actor: Actor) -> Job:
        def change(tx: Transaction, job: Job, now: float) -> None:
            _, reason = readiness.refresh(tx, job, hold=True, now=now)
            event = Event(events.JOB_HELD, now, actor.name)
            tx.update_job(job.id, states.WAITING, event, hold=True, ready=False, reason=reason)

        return self._change_waiting(ref, actor, change)

    def release(self, ref: str, actor: Actor) -> Job:
        def change(tx: Transaction, job: Job, now: float) -> None:
            free = replace(job, hold=False)
            ready, reason = readiness.refresh(tx, free, hold=False, now=now)
            event = Event(events.JOB_RELEASED, now, actor.name)
            tx.update_job(job.id, states.WAITING, event, hold=False, ready=ready, reason=reason)

        return self._change_waiting(ref, actor, change)

    def enqueue(self, ref: str, actor: Actor, priority: Priority | None = None) -> Job:
        """Release a hold and set the priority."""

        def change(tx: Transaction, job: Job, now: float) -> None:
            ready, reason = readiness.refresh(tx, job, hold=False, now=now)
            wanted = priority or job.priority
            event = Event(events.JOB_ENQUEUED, now, actor.name, params={"priority": wanted.value})
            tx.update_job(
                job.id,
                states.WAITING,
                event,
                hold=False,
                ready=ready,
                reason=reason,
                priority=wanted,
            )

        return self._change_waiting(ref, actor, change)

    def delete(self, ref: str, actor: Actor) -> None:
        """Record, folders and logs of an ended job; its outputs and checkpoints are never ours."""
        now = self._parts.clock()

        def work(tx: Transaction) -> tuple[Job, list[Unit]]:
            job = find(tx, ref)
            actor.must_own(job)
            if job.status not in states.ENDED:
                raise errors.NotEnded(job=job.ref, status=job.status.value)
            units = [unit_of(attempt) for attempt in tx.attempts(job.id)]
            units += [unit_of(one) for one in tx.preparations(job.id)]
            tx.delete_job(job.id)
            told = {"job": job.ref}
            tx.append_event(None, Event(events.JOB_DELETED, now, actor.name, None, told))
            return job, units

        job, units = self._parts.store.write(work)
        for unit in units:
            if unit.node_id == self._parts.node_id:
                self._parts.executors[unit.executor].remove(unit.name)
        prefetch_plan.drop_links(self._parts.settings, job)
        story.of(job.ref).info("job deleted by {}", actor.name)

    def _change_waiting(self, ref: str, actor: Actor, change: Change) -> Job:
        now = self._parts.clock()

        def work(tx: Transaction) -> Job:
            job = find(tx, ref)
            actor.must_own(job)
            if job.status in states.ENDED:
                raise errors.AlreadyEnded(job=job.ref, status=job.status.value)
            if job.status not in states.WAITING:
                raise errors.Conflict(
                    f"Job {job.ref} is {job.status.value}: only a waiting job can be held, "
                    "released or moved in the queue.",
                    job=job.ref,
                    status=job.status.value,
                )
            change(tx, job, now)
            return find(tx, job.id)

        return self._again_if_stale(work)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A stop that has to be passed on."""

    unit: Unit
    stop: Stop


def _cancel_waiting(tx: Transaction, job: Job, actor: Actor, cause: str, now: float) -> list[Job]:
    """The jobs that depended on it and were cancelled with it."""
    tx.apply(
        states.move(
            job.id,
            job.status,
            JobStatus.CANCELLED,
            Event(events.JOB_CANCELLED, now, actor.name, params={"cause": cause}),
            reason=cancel_reasons.asked_of(job, cause, actor.name),
            ready=False,
            completed_at=now,
        )
    )
    return readiness.after_end(tx, job, now)


def _cancel_active(
    tx: Transaction,
    job: Job,
    actor: Actor,
    force: bool,
    cause: str,
    now: float,
    leftover_s: float,
) -> _Asked | None:
    """None when that was asked before. `leftover_s` is the grace of services without a main."""
    attempt = tx.attempt(job.attempt_id())
    assert attempt is not None  # an active job always has one
    again = job.status is JobStatus.CANCELLING
    if again and not force:
        return None
    seq = attempt.stop_seq + 1
    tx.update_attempt(attempt.attempt_id, states.LIVE, status=AttemptStatus.STOPPING, stop_seq=seq)
    code = events.JOB_FORCE_KILLED if force else events.JOB_CANCELLING
    grace = 0.0 if force else job.spec.grace_s
    told = {"cause": cause, "grace_s": grace, "stage": job.stage and job.stage.value}
    event = Event(code, now, actor.name, attempt.attempt_id, told)
    if again:
        hurried = cancel_reasons.hurried(job.reason, now)
        tx.update_job(job.id, frozenset({JobStatus.CANCELLING}), event, reason=hurried)
    else:
        reason = cancel_reasons.waiting(cause, actor.name, grace, now)
        if job.status is JobStatus.SCHEDULED and job.spec.services:
            services, left = [one.name for one in job.spec.services], min(grace, leftover_s)
            code = reasons.WAITING_FOR_SERVICES
            reason = cancel_reasons.waiting(cause, actor.name, left, now, code, services=services)
        tx.apply(states.move(job.id, job.status, JobStatus.CANCELLING, event, reason=reason))
    return _Asked(unit_of(attempt), Stop(seq, cause, grace, actor.name, now))


def _cancel_prepared(
    tx: Transaction,
    job: Job,
    living: Preparation,
    actor: Actor,
    force: bool,
    cause: str,
    now: float,
) -> _Asked | None:
    """As above, for a job whose download or check is under way."""
    again = job.status is JobStatus.CANCELLING
    if again and not force:
        return None
    seq = living.stop_seq + 1
    stopping = AttemptStatus.STOPPING
    tx.update_preparation(living.preparation_id, states.LIVE, status=stopping, stop_seq=seq)
    code = events.JOB_FORCE_KILLED if force else events.JOB_CANCELLING
    event = Event(code, now, actor.name, living.preparation_id, {"cause": cause})
    grace = 0.0 if force else preparation.GRACE_S
    if again:
        hurried = cancel_reasons.hurried(job.reason, now)
        tx.update_job(job.id, frozenset({JobStatus.CANCELLING}), event, reason=hurried)
    else:
        code, stage = reasons.WAITING_FOR_PREPARATION, living.stage.value
        reason = cancel_reasons.waiting(cause, actor.name, grace, now, code, stage=stage)
        tx.apply(states.move(job.id, job.status, JobStatus.CANCELLING, event, reason=reason))
    return _Asked(unit_of(living), Stop(seq, cause, grace, actor.name, now))
