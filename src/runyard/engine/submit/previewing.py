"""What would become of a job if it were submitted now: looked at, never kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

from runyard.domain import preparation, reasons
from runyard.domain.job import Job, JobSpec, NewJob, Submission
from runyard.domain.peaks import Suggestion
from runyard.domain.reasons import Reason
from runyard.domain.scheduling import estimate, placement
from runyard.domain.scheduling.view import Placement, ShapeView, WaitingJobView
from runyard.domain.states import Stage
from runyard.engine.access.actor import Actor
from runyard.engine.parts import Parts
from runyard.engine.prepare.pull_plan import PullPlan
from runyard.engine.schedule import readiness
from runyard.engine.schedule.placing import Placer
from runyard.engine.submit import dataset_desk
from runyard.engine.submit.submitting import Submitter, found_dependencies
from runyard.engine.watch.peak_keeping import PeakKeeping
from runyard.engine.watch.watched import forecasts
from runyard.stores.base import Reader

_LAST = 2**62  # as an id: behind every job there is
_SHAPE = -1
_NAMED = 10  # blockers named at most, of each kind


@dataclass(frozen=True, slots=True)
class Preview:
    """`placed` when it would start now, else `reason` says why it would wait."""

    job: NewJob  # with the defaults of this server
    placed: Placement | None
    reason: Reason | None
    position: int | None = None
    est_start_low: float | None = None
    est_start_high: float | None = None
    blockers: tuple[str, ...] = ()  # public ids
    suggestion: Suggestion | None = None


class Previews:
    def __init__(
        self, parts: Parts, submitter: Submitter, placer: Placer, peaks: PeakKeeping
    ) -> None:
        self._parts = parts
        self._submitter = submitter
        self._placer = placer
        self._peaks = peaks
        self._pull = PullPlan(parts)

    def of(self, submission: Submission, actor: Actor) -> Preview:
        """BadRequest and its kinds say what a submit would refuse."""
        actor.must_submit()
        now = self._parts.clock()
        draft = self._submitter.draft(submission, actor, now)
        with self._parts.store.read() as reader:
            [draft] = dataset_desk.taken_along(reader, [draft])
            waits_for = found_dependencies(reader, submission)
            spared = self._pull.spared(draft.spec)
            prepared = not preparation.needed(spared)
            ready, own = readiness.of_new(draft.hold, waits_for, prepared=prepared)
            as_job = draft.as_job(_LAST, _SHAPE, now)
            if ready or (own is not None and own.code == reasons.PREPARING):
                found = self._in_the_queue(reader, draft, as_job, now)
                # It is placed as soon as that is done, if it still fits then.
                if own is not None:
                    found = replace(found, placed=None, reason=_brought_first(spared, own))
            else:
                unmet = tuple(ref for _, ref, _ in waits_for)
                found = Preview(draft, None, own, blockers=unmet)
        return replace(found, suggestion=self._peaks.suggestion(as_job))

    def _in_the_queue(self, reader: Reader, draft: NewJob, job: Job, now: float) -> Preview:
        if draft.spec.request.gpu_milli:
            self._parts.machine.refresh_gpus()
        view = self._placer.look(reader, now)
        decision = placement.decide(replace(view, shapes=(*view.shapes, _shape(draft, now))))
        placed = next((one for one in decision.placements if one.job_id == _LAST), None)
        if placed is not None:
            return Preview(draft, placed, None)
        reason = decision.waits.get(_SHAPE) or Reason(reasons.QUEUED)
        position = reader.position(job) or 1
        running = reader.active_attempts()
        low, high = None, None
        if reason.code in (reasons.QUEUED, reasons.MAX_CONCURRENT):
            low, high = estimate.start(
                now=now,
                ahead=position - 1,
                running=[(one.started_at, one.expected_s) for one in running],
                slots=self._parts.settings.max_concurrent,
                forecasts=forecasts(self._parts.board, running, now),
            )
        busy = reader.jobs_by_id([one.job_id for one in running[:_NAMED]])
        ahead = [one.ref for one in reader.waiting_ahead(job, _NAMED)]
        blockers = (*ahead, *(one.ref for one in busy))
        return Preview(draft, None, reason, position, low, high, blockers)


def _brought_first(spec: JobSpec, own: Reason) -> Reason:
    if preparation.stages(spec)[0] is not Stage.PULL:
        return own
    return Reason(reasons.PULLING_IMAGE, {"image": spec.image})


def _shape(draft: NewJob, now: float) -> ShapeView:
    array = draft.spec.array
    return ShapeView(
        id=_SHAPE,
        priority=draft.priority,
        request=draft.spec.request,
        jobs=(WaitingJobView(_LAST, now, draft.ref),),
        executor=draft.spec.executor,
        array_id=array.array_id if array else None,
        array_limit=array.limit if array else 0,
        gang=draft.spec.gang,
    )
