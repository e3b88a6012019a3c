"""What is worked out when somebody looks: reasons, places in the queue, estimated starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runyard.domain import reasons, states
from runyard.domain.job import Attempt, Job
from runyard.domain.reasons import Reason
from runyard.domain.scheduling import estimate
from runyard.domain.scheduling.gates import gate_values
from runyard.engine.cancel import cancel_reasons
from runyard.engine.commands import find
from runyard.engine.history.main_metrics import MainMetric, MainMetrics
from runyard.engine.parts import Parts
from runyard.engine.prepare.prefetch_plan import PrefetchPlan
from runyard.engine.prepare.pull_plan import PullPlan
from runyard.engine.read import rank_states, service_states
from runyard.engine.schedule.placing import PAUSED_FLAG
from runyard.engine.watch.close_looks import CloseLooks
from runyard.engine.watch.watched import Watched, at_a_glance, forecasts
from runyard.stores.base import ActiveAttempt, JobFilter, JobPage, Reader

# Only these waits end by jobs ending, which is what an estimate looks at.
_TOLD_BY_THE_QUEUE = frozenset({reasons.QUEUED, reasons.MAX_CONCURRENT})
_NAMED = 10  # blockers named at most, of each kind
_NAMED_IN_LIST = 5  # as above, for each row of a list


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a job waits, its place, and when it may start."""

    reason: Reason
    position: int | None
    est_start_low: float | None
    est_start_high: float | None
    blockers: tuple[str, ...]  # public ids


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with what is worked out when it is read."""

    job: Job
    reason: Reason | None  # the job's own, or its shape's while it is ready and waits
    attempt: Attempt | None  # the newest
    depends_on: tuple[tuple[str, str], ...]  # (public id, on)
    wait: Wait | None
    services: Sequence[Mapping[str, Any]] = ()  # of the attempt, where one job is looked at
    ranks: Sequence[Mapping[str, Any]] = ()  # likewise, of a distributed one
    watched: Watched = field(default_factory=Watched)
    preflight: Mapping[str, Any] | None = None  # what its newest check found, as above
    main_metric: MainMetric | None = None  # None also where nobody asked for it


@dataclass(frozen=True, slots=True)
class QueueStatus:
    dispatching: bool
    max_concurrent: int
    counts: dict[str, int]  # jobs by status
    waiting: tuple[JobView, ...]  # first in order, at most `limit`
    running: tuple[JobView, ...]
    gates: tuple[dict[str, Any], ...]  # {name, value, limit, closed}


class Views:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._prefetch = PrefetchPlan(parts.settings)
        self._pull = PullPlan(parts)
        self._close_looks = CloseLooks(parts.board)
        self._main_metrics = MainMetrics(parts.board)

    def job(self, ref: str | int) -> JobView:
        with self._parts.store.read() as reader:
            return self._full(reader, find(reader, ref))

    def jobs(
        self, chosen: JobFilter, limit: int, cursor: str | None, order: str, *, curves: bool
    ) -> tuple[JobPage, list[JobView]]:
        with self._parts.store.read() as reader:
            page = reader.jobs(chosen, limit=limit, cursor=cursor, order=order)
            views = self._briefs(reader, page.jobs)
            return page, self._with_curves(reader, views) if curves else views

    def counts(self, chosen: JobFilter) -> dict[str, int]:
        """How many of these have each status; all statuses are named."""
        with self._parts.store.read() as reader:
            found = reader.count_jobs(chosen)
        return {status.value: found.get(status, 0) for status in states.JobStatus}

    def some(self, job_ids: Sequence[int]) -> list[JobView]:
        """As on a page of the list, in any order; ids without a job are left out."""
        with self._parts.store.read() as reader:
            views = self._briefs(reader, reader.jobs_by_id(job_ids))
            return self._with_curves(reader, views)

    def _with_curves(self, reader: Reader, views: Sequence[JobView]) -> list[JobView]:
        found = self._main_metrics.of(reader, [one.job for one in views], self._parts.clock())
        return [replace(one, main_metric=found.get(one.job.id)) for one in views]

    def queue(self, limit: int) -> QueueStatus:
        with self._parts.store.read() as reader:
            active = reader.active_attempts()
            running = self._briefs(reader, reader.jobs_by_id([item.job_id for item in active]))
            counts = {status.value: 0 for status in states.JobStatus}
            counts |= {status.value: n for status, n in reader.count_by_status().items()}
            return QueueStatus(
                dispatching=reader.flag(PAUSED_FLAG) is None,
                max_concurrent=self._parts.settings.max_concurrent,
                counts=counts,
                waiting=tuple(self._waiting(reader, limit, active, running)),
                running=tuple(running),
                gates=self._gates(),
            )

    def _waiting(
        self,
        reader: Reader,
        limit: int,
        active: Sequence[ActiveAttempt],
        running: Sequence[JobView],
    ) -> list[JobView]:
        """In queue order, so that each one's place is where it stands, behind those above it."""
        views = self._briefs(reader, reader.waiting_jobs(limit))
        told = forecasts(self._parts.board, active, self._parts.clock())
        ahead = [view.job.ref for view in views[:_NAMED_IN_LIST]]
        busy = [view.job.ref for view in running[:_NAMED_IN_LIST]]
        placed = []
        for place, view in enumerate(views, start=1):
            if view.job.ready:
                wait = self._wait(view, active, told, place, (*ahead[: place - 1], *busy))
            else:
                wait = self._wait(view, active, told, None, _waited_for(view.reason))
            placed.append(replace(view, wait=wait))
        return placed

    def _gates(self) -> tuple[dict[str, Any], ...]:
        machine = self._parts.machine
        if machine.load is None:
            return ()
        closed = {gate.gate for gate in machine.gates.closed}
        return tuple(
            {"name": name, "value": value, "limit": limit, "closed": name in closed}
            for name, value, limit in gate_values(machine.load, machine.limits)
        )

    def _full(self, reader: Reader, job: Job) -> JobView:
        view = self._briefs(reader, [job])[0]
        waiting_for = reader.dependencies(job.id)
        view = replace(
            view, depends_on=tuple((ref, dependency.on) for dependency, ref, _ in waiting_for)
        )
        watched = self._close_looks.at(reader, job, self._parts.clock())
        view = self._with_curves(reader, [replace(view, watched=watched)])[0]
        if view.attempt is not None and job.spec.services:
            services = service_states.of_attempt(self._parts, job, view.attempt)
            view = replace(view, services=services)
        if view.attempt is not None and job.spec.distributed is not None:
            ranks = rank_states.of_attempt(self._parts, job, view.attempt)
            view = replace(view, ranks=ranks)
        if job.spec.preflight:
            view = replace(view, preflight=_preflight_of(reader, job))
        if job.status not in states.WAITING:
            return view
        running = reader.active_attempts()
        if job.ready:
            busy = reader.jobs_by_id([attempt.job_id for attempt in running[:_NAMED]])
            ahead = reader.waiting_ahead(job, _NAMED)
            blockers = tuple([item.ref for item in ahead] + [item.ref for item in busy])
        else:
            unmet = [ref for _, ref, status in waiting_for if status not in states.ENDED]
            blockers = tuple(unmet)
        told = forecasts(self._parts.board, running, self._parts.clock())
        wait = self._wait(view, running, told, reader.position(job), blockers)
        return replace(view, wait=wait)

    def _wait(
        self,
        view: JobView,
        running: Sequence[ActiveAttempt],
        told: Sequence[estimate.Forecast | None],
        place: int | None,
        blockers: tuple[str, ...],
    ) -> Wait:
        reason = view.reason or Reason(reasons.QUEUED)
        if place is None:
            until = view.job.not_before if reason.code == reasons.RETRY_DELAY else None
            return Wait(reason, None, until, None, blockers)
        if reason.code not in _TOLD_BY_THE_QUEUE:
            return Wait(reason, place, None, None, blockers)
        low, high = estimate.start(
            now=self._parts.clock(),
            ahead=place - 1,
            running=[(attempt.started_at, attempt.expected_s) for attempt in running],
            slots=self._parts.settings.max_concurrent,
            forecasts=told,
        )
        return Wait(reason, place, low, high, blockers)

    def _briefs(self, reader: Reader, jobs: Sequence[Job]) -> list[JobView]:
        """One query for all attempts and one per shape, however long the page."""
        attempts = reader.attempts_by_id([job.attempt_id() for job in jobs if job.attempt_number])
        waits: dict[int, Reason | None] = {}
        views = []
        for job in jobs:
            reason = job.reason
            if job.ready and job.status in states.WAITING:
                if job.shape_id not in waits:
                    waits[job.shape_id] = reader.shape_wait(job.shape_id)
                reason = waits[job.shape_id] or Reason(reasons.QUEUED)
            elif reason is not None and reason.code == reasons.PREPARING:
                seen = self._pull.as_seen(reason, job)
                reason = self._prefetch.as_seen(reason, job.ref) if seen is reason else seen
            elif reason is not None and reason.code == reasons.STARTING_CONTAINER:
                reason = self._pull.with_progress(reason, job.attempt_id())
            elif job.status is states.JobStatus.CANCELLING:
                reason = cancel_reasons.as_seen(reason, self._parts.clock())
            watched = at_a_glance(self._parts.board, job, self._parts.clock())
            attempt = attempts.get(job.attempt_id())
            views.append(JobView(job, reason, attempt, (), None, watched=watched))
        return views


def _waited_for(reason: Reason | None) -> tuple[str, ...]:
    """The jobs that a reason names, so that a list needs no question for each row."""
    if reason is None or reason.code != reasons.DEPENDENCY:
        return ()
    return tuple(str(one["job"]) for one in reason.params["jobs"][:_NAMED_IN_LIST])


def _preflight_of(reader: Reader, job: Job) -> Mapping[str, Any] | None:
    reports = (
        one.outcome.get("report")
        for one in reversed(reader.preparations(job.id))
        if one.stage is states.Stage.PREFLIGHT and one.outcome
    )
    return next((report for report in reports if report), None)
