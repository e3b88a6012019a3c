"""Accepting jobs: defaults, ids, dependencies, and the first placement in the same commit."""

from __future__ import annotations

import graphlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from runyard.domain import (
    dependencies,
    errors,
    events,
    ids,
    job_services,
    preparation,
    reasons,
    states,
)
from runyard.domain.events import Event
from runyard.domain.job import Dependency, Job, JobSpec, NewJob, Submission
from runyard.domain.scheduling import defaults
from runyard.domain.states import JobStatus
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.cancel import leases
from runyard.engine.launch.launching import Launcher, Placed
from runyard.engine.parts import Parts
from runyard.engine.schedule import readiness
from runyard.engine.schedule.placing import Placer
from runyard.engine.submit import dataset_desk
from runyard.stores.base import Reader, Transaction

_TOLD = 20  # lines in the log for one big batch


@dataclass(frozen=True, slots=True)
class Idempotency:
    key: str
    digest: str  # hash of the body


@dataclass(frozen=True, slots=True)
class _Stored:
    jobs: list[Job]
    placed: list[Placed]
    fresh: bool
    wake: bool = False


class Submitter:
    def __init__(
        self,
        parts: Parts,
        placer: Placer,
        launcher: Launcher,
        wake: Callable[[], None],
        prepare: Callable[[], None],
        leased: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._placer = placer
        self._launcher = launcher
        self._wake = wake
        self._prepare = prepare
        self._leased = leased

    def submit(
        self, submissions: Sequence[Submission], actor: Actor, idempotency: Idempotency | None
    ) -> list[Job]:
        stored = self._parts.store.write(self._work(submissions, actor, idempotency))
        return self._accepted(stored, actor)

    def submit_soon(
        self, submissions: Sequence[Submission], actor: Actor, idempotency: Idempotency | None
    ) -> Future[list[Job]]:
        answer: Future[list[Job]] = Future()
        work = self._work(submissions, actor, idempotency)

        def committed(done: Future[_Stored]) -> None:
            try:
                answer.set_result(self._accepted(done.result(), actor))
            except Exception as error:
                answer.set_exception(error)

        self._parts.store.write_soon(work).add_done_callback(committed)
        return answer

    def _work(
        self, submissions: Sequence[Submission], actor: Actor, idempotency: Idempotency | None
    ) -> Callable[[Transaction], _Stored]:
        actor.must_submit()
        now = self._parts.clock()
        drafts = [self.draft(submission, actor, now) for submission in submissions]
        order = _batch_order(submissions)
        leased_at = self._parts.store.now() if any(draft.spec.lease for draft in drafts) else None
        if any(draft.spec.request.gpu_milli for draft in drafts):
            self._parts.machine.refresh_gpus()

        def work(tx: Transaction) -> _Stored:
            if idempotency and (earlier := _earlier(tx, actor, idempotency)) is not None:
                return _Stored(earlier, [], fresh=False)
            jobs = _insert(tx, dataset_desk.taken_along(tx, drafts), submissions, order, now)
            if leased_at is not None:
                leases.begin(tx, jobs, leased_at)
            if idempotency:
                refs = json.dumps([job.ref for job in jobs])
                tx.put_idempotent(actor.key_id, idempotency.key, idempotency.digest, refs, now)
            # Several servers place under one lock; there a submit only stores, and wakes the pass.
            if self._parts.store.shared:
                return _Stored(jobs, [], fresh=True, wake=True)
            if not self._placer.full:
                placed = self._placer.place(tx, now, jobs)
                told = _with_reasons(tx, jobs, placed)
                return _Stored(told, placed, fresh=True, wake=self._placer.unfinished)
            # Nothing can start now; a pass is worth its cost only where a reason is missing.
            shapes = {job.shape_id for job in jobs if job.ready}
            unknown = any(tx.shape_wait(shape_id) is None for shape_id in shapes)
            return _Stored(jobs, [], fresh=True, wake=unknown)

        return work

    def _accepted(self, stored: _Stored, actor: Actor) -> list[Job]:
        for placed in stored.placed:
            self._launcher.launch(placed)
        if stored.wake:
            self._wake()
        if any(preparation.needed(job.spec) for job in stored.jobs):
            self._prepare()
        if stored.fresh and any(job.spec.lease for job in stored.jobs):
            self._leased()
        if stored.fresh:
            for job in stored.jobs[:_TOLD]:
                server_log.of(job.ref).info("job submitted by {}: {}", actor.name, job.spec.name)
        return stored.jobs

    def _runs_here(self, executor: str) -> bool:
        """What is found out on this machine says nothing of others."""
        offered = {node.kind for node in self._parts.machine.offered}
        return executor not in offered and (executor != "auto" or "local" in self._parts.executors)

    def _is_pulled_first(self, spec: JobSpec) -> bool:
        """Before it is given anything; what can never fit here is not kept from saying so."""
        if self._parts.images is None or self._parts.settings.docker_pull == "never":
            return False
        capacity = self._parts.machine.capacity
        fits = (
            spec.request.gpu_milli <= 1000 * len(capacity.gpus)
            and spec.request.cpu_milli <= capacity.cpu_milli
            and spec.request.memory_mb <= capacity.memory_mb
        )
        return fits or self._parts.store.shared

    def draft(self, submission: Submission, actor: Actor, now: float) -> NewJob:
        """With the defaults of this server."""
        settings = self._parts.settings
        capacity = self._parts.machine.capacity_for(submission.spec.executor)
        wanted = defaults.for_ranks(submission.wanted, submission.spec.distributed, capacity)
        request = defaults.request_for(wanted, capacity, settings.max_concurrent)
        job_services.refuse_ports_of_the_pool(submission.spec, settings.port_range)
        job_services.refuse_own_networks(submission.spec, settings.docker_network)
        retries, grace = submission.max_retries, submission.grace_s
        # A job with an image never runs outside it.
        contained = submission.spec.image is not None and submission.spec.executor == "auto"
        spec = replace(
            submission.spec,
            request=request,
            memory_asked=submission.wanted.memory_gb is not None,
            executor="docker" if contained else submission.spec.executor,
            max_retries=settings.max_retries if retries is None else retries,
            grace_s=settings.grace_s if grace is None else grace,
        )
        checked = preparation.is_checked(
            spec,
            by_default=settings.preflight == "auto" and self._runs_here(spec.executor),
            gpus_fit=request.gpu_milli <= 1000 * len(self._parts.machine.capacity.gpus),
        )
        if checked or spec.preflight is not None:
            spec = replace(spec, preflight=checked)
        if spec.image is not None and self._is_pulled_first(spec):
            spec = replace(spec, pull=True)
        return NewJob(
            ref=ids.job_ref(self._parts.random(16)),
            spec=spec,
            priority=submission.priority,
            owner=actor.name,
            submitted_at=now,
            hold=submission.hold,
        )


def _batch_order(submissions: Sequence[Submission]) -> list[int] | None:
    """Indexes so that each job comes after those of the batch it depends on; None when no job of
    the batch depends on another. DependencyCycle and UnknownDependency say what is wrong."""
    local = {
        submission.spec.name: [
            ref[1:] for ref, _ in submission.depends_on if ref.startswith(dependencies.BATCH_MARK)
        ]
        for submission in submissions
    }
    if not any(local.values()):
        return None
    numbers = {submission.spec.name: n for n, submission in enumerate(submissions)}
    if len(numbers) != len(submissions):
        raise errors.BadRequest("Jobs of a batch that refer to each other need different names.")
    for names in local.values():
        for name in names:
            if name not in numbers:
                raise errors.UnknownDependency(job=dependencies.BATCH_MARK + name)
    dependencies.refuse_cycles(local)
    return [numbers[name] for name in graphlib.TopologicalSorter(local).static_order()]


def _insert(
    tx: Transaction,
    drafts: Sequence[NewJob],
    submissions: Sequence[Submission],
    order: list[int] | None,
    now: float,
) -> list[Job]:
    if order is None:
        found = [_lookup(tx, submission, {}) for submission in submissions]
        ready = [_settled(draft, waits) for draft, waits in zip(drafts, found, strict=True)]
        jobs = tx.insert_jobs(ready)
    else:
        by_name: dict[str, Job] = {}
        placed: dict[int, Job] = {}
        for n in order:
            waits = _lookup(tx, submissions[n], by_name)
            [placed[n]] = tx.insert_jobs([_settled(drafts[n], waits)])
            by_name[submissions[n].spec.name] = placed[n]
        jobs = [placed[n] for n in range(len(drafts))]
    return [_cancel_if_broken(tx, job, now) for job in jobs]


Found = tuple[tuple[Dependency, str, JobStatus], ...]


def found_dependencies(reader: Reader, submission: Submission) -> Found:
    """As they are now; UnknownDependency when one is not there."""
    return _lookup(reader, submission, {})


def _lookup(tx: Reader, submission: Submission, batch: dict[str, Job]) -> Found:
    found = []
    for ref, on in submission.depends_on:
        job = batch.get(ref[1:]) if ref.startswith(dependencies.BATCH_MARK) else tx.job(ref)
        if job is None:
            raise errors.UnknownDependency(job=ref)
        found.append((Dependency(job.id, on), job.ref, job.status))
    return tuple(found)


def _settled(draft: NewJob, found: Found) -> NewJob:
    prepared = not preparation.needed(draft.spec)
    if not found and not draft.hold and prepared:
        return draft  # ready as it is
    ready, reason = readiness.of_new(draft.hold, found, prepared=prepared)
    waits_for = tuple(dependency for dependency, _, _ in found)
    return replace(draft, depends_on=waits_for, ready=ready, reason=reason)


def _with_reasons(tx: Transaction, jobs: list[Job], placed: list[Placed]) -> list[Job]:
    """The jobs with why they wait, so that the answer can warn of what can never fit."""
    if len(placed) == len(jobs):
        return jobs
    waits = {shape: tx.shape_wait(shape) for shape in {job.shape_id for job in jobs if job.ready}}
    if not any(wait and wait.code == reasons.NEVER_FITS for wait in waits.values()):
        return jobs
    return [replace(job, reason=job.reason or waits.get(job.shape_id)) for job in jobs]


def _cancel_if_broken(tx: Transaction, job: Job, now: float) -> Job:
    """What it depends on has failed already."""
    if not readiness.is_broken(job.reason):
        return job
    event = Event(events.JOB_CANCELLED, now, "scheduler")
    tx.apply(
        states.move(
            job.id,
            JobStatus.PENDING,
            JobStatus.CANCELLED,
            event,
            reason=job.reason,
            ready=False,
            completed_at=now,
        )
    )
    return replace(job, status=JobStatus.CANCELLED)


def _earlier(tx: Transaction, actor: Actor, idempotency: Idempotency) -> list[Job] | None:
    found = tx.idempotent(actor.key_id, idempotency.key)
    if found is None:
        return None
    digest, answer = found
    if digest != idempotency.digest:
        raise errors.IdempotencyConflict()
    refs = json.loads(answer)
    jobs = [job for ref in refs if (job := tx.job(ref)) is not None]
    if len(jobs) < len(refs):
        raise errors.Conflict(
            "The jobs of the first request with this Idempotency-Key were deleted. "
            "Use another key to submit them again.",
            jobs=refs,
        )
    return jobs
