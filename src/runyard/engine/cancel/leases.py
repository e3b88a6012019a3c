"""Leases: a job whose client must renew it, and what happens when the client does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runyard.domain import errors, events, states
from runyard.domain.events import Event
from runyard.domain.job import Job
from runyard.domain.states import JobStatus
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.cancel.cancel_reasons import LEASE
from runyard.engine.commands import Commands, find
from runyard.engine.parts import Parts
from runyard.stores.base import Lease, Transaction

# A server that looks so late was itself asleep, and its clients could not reach it either.
_OVERSLEPT_S = 10.0
_ACTOR = Actor(LEASE, "admin")


def begin(tx: Transaction, jobs: Iterable[Job], now: float) -> bool:
    """Each job just stored that has terms gets its lease; whether there was one. `now` is the
    store's clock."""
    begun = False
    for job in jobs:
        if job.spec.lease is not None and job.status not in states.ENDED:
            tx.put_lease(Lease(job.id, now + job.spec.lease.length_s))
            begun = True
    return begun


class Leases:
    def __init__(self, parts: Parts, commands: Commands, wake: Callable[[], None]) -> None:
        self._parts = parts
        self._commands = commands
        self._wake = wake  # something changed that may let a job start
        self._planned: float | None = None  # when the next look was to be, by the store's clock

    def renew(self, ref: str, actor: Actor) -> tuple[Job, Lease]:
        """Also gives a lease back that was lost or that a retry did not begin with."""
        now = self._parts.store.now()

        def work(tx: Transaction) -> tuple[Job, Lease]:
            job = find(tx, ref)
            actor.must_own(job)
            if job.status in states.ENDED:
                raise errors.AlreadyEnded(job=job.ref, status=job.status.value)
            if job.spec.lease is None:
                raise errors.NoLease(job=job.ref)
            lease = Lease(job.id, now + job.spec.lease.length_s)
            tx.put_lease(lease)
            return job, lease

        return self._parts.store.write(work, durable=False)

    def begin_again(self) -> int:
        """Every lease at full length: while no server ran nobody could renew; how many."""
        now = self._parts.store.now()

        def work(tx: Transaction) -> int:
            held = tx.leases()
            jobs = {job.id: job for job in tx.jobs_by_id([lease.job_id for lease in held])}
            for lease in held:
                if not begin(tx, [jobs[lease.job_id]], now):
                    tx.drop_lease(lease.job_id)  # it ended in some other way
            return len(held)

        with self._parts.store.read() as reader:
            if reader.next_lease_end() is None:
                return 0
        return self._parts.store.write(work, durable=False)

    def expire(self) -> float | None:
        """End what was not renewed; seconds until the next lease runs out, None without one."""
        now = self._parts.store.now()
        if self._planned is not None and now > self._planned + _OVERSLEPT_S:
            server_log.of().warning("this server was asleep: every lease begins again")
            self.begin_again()
        with self._parts.store.read() as reader:
            expired = reader.expired_leases(now)
            jobs = {job.id: job for job in reader.jobs_by_id([one.job_id for one in expired])}
        for lease in expired:
            if (job := jobs.get(lease.job_id)) is not None:
                self._lose(job, now)
        with self._parts.store.read() as reader:
            following = reader.next_lease_end()
        if following is None:
            self._planned = None
            return None
        self._planned = max(following, now)
        return max(0.0, following - self._parts.store.now())

    def _lose(self, job: Job, now: float) -> None:
        terms = job.spec.lease
        if terms is not None and terms.on_lost == "cancel":
            gone = self._commands.cancel_if(
                job.ref, _ACTOR, LEASE, lambda tx, found: self._lost(tx, found, now)
            )
            if gone:
                words = "lease ran out: not renewed within {} s, the job is cancelled"
                server_log.of(job.ref).warning(words, terms.length_s)
                self._wake()
        elif self._parts.store.write(lambda tx: self._lost(tx, job, now)):
            server_log.of(job.ref).warning("lease ran out: the job goes on, as its terms say")

    def _lost(self, tx: Transaction, job: Job, now: float) -> bool:
        """Take the lease away if it still is expired: a renewal or another server may be first."""
        if not tx.drop_lease(job.id, expired_by=now):
            return False
        current = tx.job(job.id)
        if current is None or current.status in states.ENDED:
            return False
        if current.status is JobStatus.CANCELLING:
            return False
        terms = current.spec.lease
        params = {
            "lease_s": terms.length_s if terms else None,
            "on_lost": terms.on_lost if terms else None,
        }
        attempt = current.attempt_id() if current.attempt_number else None
        event = Event(events.LEASE_LOST, self._parts.clock(), _ACTOR.name, attempt, params)
        tx.append_event(current.id, event)
        return True
