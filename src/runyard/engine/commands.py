"""What people can ask of a job after its submit: cancel, retry, hold, release, enqueue, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from runyard.domain import errors, events, states
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job, Priority
from runyard.domain.states import JobStatus
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.cancel import cancels, unasked_stops
from runyard.engine.cancel.cancels import Cancel
from runyard.engine.parts import Parts
from runyard.engine.prepare import prefetch_plan
from runyard.engine.schedule import readiness
from runyard.engine.submit import retry_asked
from runyard.engine.units import Unit, unit_of
from runyard.executors.base import Stop
from runyard.stores.base import Reader, Transaction

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
        cancel = Cancel(actor.name, cause, self._parts.clock(), force)

        def work(tx: Transaction) -> tuple[Job, cancels.Asked | list[Job] | None]:
            job = find(tx, ref)
            actor.must_own(job)
            if not guard(tx, job):
                return job, None
            if job.status in (JobStatus.COMPLETED, JobStatus.FAILED):
                raise errors.AlreadyEnded(job=job.ref, status=job.status.value)
            if job.status is JobStatus.CANCELLED:
                return job, None
            if (living := readiness.living_preparation(tx, job)) is not None:
                asked = cancels.of_prepared(tx, job, living, cancel)
                return find(tx, job.id), asked
            if job.status in states.WAITING:
                dependents = cancels.of_waiting(tx, job, cancel)
                return find(tx, job.id), dependents
            asked = cancels.of_active(tx, job, cancel, self._parts.settings.leftover_grace_s)
            return find(tx, job.id), asked

        job, done = self._again_if_stale(work)
        if isinstance(done, list):
            server_log.of(job.ref).info("job cancelled before starting, asked by {}", actor.name)
            prefetch_plan.drop_links(self._parts.settings, job)
            readiness.tell_cancelled(done, job.ref)
        elif done is not None:
            word = "force-kill" if force else "cancel"
            log = server_log.of(job.ref, done.unit.name)
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
        log = server_log.of(ref, attempt.attempt_id)
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
            log = server_log.of(unit.name.rpartition(".")[0], unit.name)
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
            waits = retry_asked.check(tx, job)
            keep(tx, job)
            retry_asked.begin(tx, job, waits, by=actor.name, now=now, fresh=fresh, delay_s=delay_s)
            return find(tx, job.id)

        job = self._again_if_stale(work)
        server_log.of(job.ref).info("retry asked by {}", actor.name)
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
        server_log.of(job.ref).info("job deleted by {}", actor.name)

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
