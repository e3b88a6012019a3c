"""Preparation of jobs: started while they wait, recorded when it ends, ended with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runyard.domain import events, preparation, reasons, states
from runyard.domain.events import Event
from runyard.domain.job import Job
from runyard.domain.monitoring.alert import OF_AN_END
from runyard.domain.preparation import Preparation
from runyard.domain.reasons import Reason
from runyard.domain.recovery import backoff
from runyard.domain.states import AttemptStatus, JobStatus, Stage
from runyard.engine import server_log
from runyard.engine.cancel import cancel_reasons
from runyard.engine.commands import Commands
from runyard.engine.end import receipts
from runyard.engine.parts import Parts
from runyard.engine.prepare import prefetch_plan
from runyard.engine.prepare.prefetch_plan import PrefetchPlan
from runyard.engine.prepare.preflight_plan import PreflightPlan
from runyard.engine.prepare.pull_plan import PullPlan
from runyard.engine.schedule import readiness
from runyard.engine.schedule.placing import fingerprint
from runyard.engine.units import PREPARED_BY, unit_of
from runyard.engine.watch import alerting
from runyard.executors.base import End, Executor, ExecutorUnavailable, Sight, Stop
from runyard.stores.base import Transaction

_ACTOR = "preparation"
_HAND_OVER_S = 10.0
_MOST_PASSED = 100  # jobs that find all they need here, in one transaction


@dataclass(frozen=True, slots=True)
class _Recorded:
    job: Job
    of: Preparation
    to: JobStatus | None  # None when the job goes on waiting
    cancelled: Sequence[Job] = ()


@dataclass(frozen=True, slots=True)
class _TakenUp:
    """What one look at all unprepared jobs led to."""

    begun: list[tuple[Job, Preparation]] = field(default_factory=list)
    passed: list[Job] = field(default_factory=list)  # there was nothing left to do for them
    due: list[float] = field(default_factory=list)  # when to look again


class Preparer:
    def __init__(self, parts: Parts, commands: Commands, wake: Callable[[], None]) -> None:
        self._parts = parts
        self._commands = commands
        self._prefetch = PrefetchPlan(parts.settings)
        self._preflight = PreflightPlan(parts.settings)
        self._pull = PullPlan(parts)
        self._wake = wake
        self.open = False  # until the yard opens, and again when it shuts down

    # the loop

    def work(self) -> float | None:
        """Begin what is due; when to look again."""
        executor = self._executor()
        if executor is None or not self.open or not executor.available()[0]:
            return None
        with self._parts.store.read() as reader:
            stopping = any(
                one.status is AttemptStatus.STOPPING
                for one in reader.live_preparations(self._parts.node_id)
            )
            unprepared = reader.unprepared_jobs()
        if stopping:
            self.reconcile(at_start=False)  # passes on what a broken dependency asked for
        if not unprepared:
            return None
        here = self._pull.look(unprepared)
        now = self._parts.clock()
        done = self._parts.store.write(
            lambda tx: self._take_up(tx, here, now), exclusive=self._parts.store.shared
        )
        for job, begun in done.begun:
            self._launch(executor, job, begun)
        if done.passed:
            self._wake()
        return max(0.0, min(done.due) - now) if done.due else None

    def _take_up(self, tx: Transaction, here: Mapping[str, bool], now: float) -> _TakenUp:
        """The next step of every unprepared job; `here` says which images are on this machine."""
        free, done = self._free(tx), _TakenUp()
        for job in tx.unprepared_jobs():
            if len(done.passed) >= _MOST_PASSED:
                break  # the rest right after this, so that others can write in between
            step = self._next(tx, job)
            if isinstance(step, preparation.GiveUp):
                _fail(tx, job, step.reason, now)
            elif step is not None and step.due > now:
                done.due.append(step.due)
            elif step is not None and step.stage is Stage.PULL and _settles(here, job):
                if here.get(job.spec.image or ""):
                    done.passed.append(job)
                    self._pass(tx, job, step.stage, now)
            elif step is not None and free[step.stage] > 0 and self._is_for_us(job):
                free[step.stage] -= 1
                done.begun.append((job, self._begin(tx, job, step.stage, now)))
        return done

    def _next(self, tx: Transaction, job: Job) -> preparation.Begin | preparation.GiveUp | None:
        delays = backoff.delays_of(job.spec.retry_delays, self._parts.settings.retry_delays)
        return preparation.next_step(job.spec, tx.preparations(job.id), job.queued_at, delays)

    def _free(self, tx: Transaction) -> dict[Stage, int]:
        """How many more may begin: quick checks never wait for long downloads."""
        stages = (Stage.PREFLIGHT, Stage.PULL, Stage.PREFETCH)
        free = dict.fromkeys(stages, self._parts.settings.max_preparations)
        for living in tx.live_preparations(self._parts.node_id):
            free[living.stage] -= 1
        return free

    def _is_for_us(self, job: Job) -> bool:
        """Among several servers, what is checked here must be what will run here."""
        wanted = job.spec.request.gpu_milli
        capacity = self._parts.machine.capacity_for(job.spec.executor)
        return not self._parts.store.shared or wanted <= 1000 * len(capacity.gpus)

    def _pass(self, tx: Transaction, job: Job, stage: Stage, now: float) -> None:
        """What it would bring is here."""
        passed = replace(self._next_of(tx, job, stage, now), status=AttemptStatus.ENDED)
        tx.insert_preparation(replace(passed, exit_code=0, started_at=now, ended_at=now))
        ready, reason = readiness.refresh(tx, job, hold=job.hold, now=now)
        tx.update_job(job.id, states.WAITING, ready=ready, reason=reason)

    def _next_of(self, tx: Transaction, job: Job, stage: Stage, now: float) -> Preparation:
        number = len(tx.preparations(job.id)) + 1
        machine = self._parts.machine
        return Preparation(
            preparation_id=preparation.preparation_id(job.ref, number),
            job_id=job.id,
            number=number,
            status=AttemptStatus.STARTING,
            stage=stage,
            node_id=self._parts.node_id,
            machine_id=machine.machine_id,
            boot_id=machine.boot_id,
            tag=fingerprint(self._parts.random(8)),
            created_at=now,
        )

    def _begin(self, tx: Transaction, job: Job, stage: Stage, now: float) -> Preparation:
        begun = self._next_of(tx, job, stage, now)
        tx.insert_preparation(begun)
        told = {"stage": stage.value}
        event = Event(events.PREPARATION_STARTED, now, _ACTOR, begun.preparation_id, told)
        reason = preparation.under_way(begun)
        tx.update_job(job.id, states.WAITING, event, stage=begun.stage, ready=False, reason=reason)
        return begun

    def _launch(self, executor: Executor, job: Job, begun: Preparation) -> None:
        log = server_log.of(job.ref, begun.preparation_id)
        try:
            executor.start(self._plan_of(begun).launch(job, begun))
        except (ExecutorUnavailable, OSError) as error:
            log.error("the preparation could not be handed over: {}", error)
            if executor.refuse(begun.preparation_id):
                end = End(None, None, "never_started", "server", self._parts.clock())
                self.ended([(begun.preparation_id, end)])
            return
        if begun.stage is Stage.PREFETCH:
            log.info(
                "preparation started: {} to fetch", len(job.spec.prefetch) + len(job.spec.datasets)
            )
        else:
            log.info("preparation started: {}", begun.stage.value)

    def _plan_of(self, one: Preparation) -> PrefetchPlan | PreflightPlan | PullPlan:
        if one.stage is Stage.PULL:
            return self._pull
        return self._preflight if one.stage is Stage.PREFLIGHT else self._prefetch

    # ends

    def ended(self, ends: Sequence[tuple[str, End]]) -> None:
        """Record the ends of preparations; their jobs become ready, wait on, fail or are gone."""
        now = self._parts.clock()

        def work(tx: Transaction) -> list[_Recorded]:
            return [done for name, end in ends if (done := self._end(tx, name, end, now))]

        for done in self._parts.store.write(work):
            if done.to in states.ENDED:
                prefetch_plan.drop_links(self._parts.settings, done.job)
            self._preflight.forget(done.of)
            self._tell(done)
        self._wake()

    def _end(self, tx: Transaction, name: str, end: End, now: float) -> _Recorded | None:
        found = tx.preparation(name)
        job = tx.job(found.job_id) if found else None
        if found is None or job is None or found.status is AttemptStatus.ENDED:
            return None
        outcome = self._plan_of(found).outcome(job.ref, name)
        tx.update_preparation(
            name,
            states.LIVE,
            status=AttemptStatus.ENDED,
            exit_code=end.code,
            signal=end.signal,
            cause=end.cause,
            outcome=outcome,
            started_at=end.started_at,
            ended_at=end.ended_at,
            receipt=receipts.of_preparation(found, job, end, now),
        )
        params = {"exit_code": end.code, "signal": end.signal, "cause": end.cause}
        params["stage"] = found.stage.value
        event = Event(events.PREPARATION_ENDED, end.ended_at, _ACTOR, name, params)
        tx.append_event(job.id, event)
        alerting.close_of_job_in(tx, job.id, OF_AN_END, end.ended_at, _ACTOR)
        if job.status is JobStatus.CANCELLING:
            return _Recorded(job, found, JobStatus.CANCELLED, _cancelled(tx, job, end))
        if job.status not in states.WAITING:
            return None
        step = None if end.code == 0 else self._next(tx, job)
        if isinstance(step, preparation.GiveUp):
            return _Recorded(job, found, JobStatus.FAILED, _fail(tx, job, step.reason, now))
        ready, reason = readiness.refresh(tx, job, hold=job.hold, now=now)
        if step is not None and reason is not None and reason.code == reasons.PREPARING:
            again = {"stage": found.stage.value, "until": step.due, "last": outcome or {}}
            reason = Reason(reasons.PREPARING, again)
        tx.update_job(job.id, states.WAITING, stage=None, ready=ready, reason=reason)
        return _Recorded(job, found, None)

    def _tell(self, done: _Recorded) -> None:
        log = server_log.of(done.job.ref, done.of.preparation_id)
        if done.to is JobStatus.CANCELLED:
            if done.of.stage is Stage.PREFLIGHT:
                log.info("job cancelled during its preflight: nothing of it runs any more")
            elif done.of.stage is Stage.PULL:
                log.info("job cancelled during its pull: nothing of it runs any more")
            else:
                log.info("job cancelled during its download: nothing of it runs any more")
        elif done.to is JobStatus.FAILED:
            log.error("preparation failed: the job cannot run ({})", done.of.stage.value)
        else:
            log.info("preparation ended: {}", done.of.stage.value)
        readiness.tell_cancelled(done.cancelled, done.job.ref)

    # restarts and shutdown

    def reconcile(self, *, at_start: bool) -> None:
        """Make the records and what really lives agree, as for attempts."""
        executor = self._executor()
        if executor is None:
            return
        own = self._parts.node_id if self._parts.store.shared else None
        with self._parts.store.read() as reader:
            found = {one.preparation_id: one for one in reader.live_preparations(own)}
        if not found:
            return
        ends: list[tuple[str, End]] = []
        now = self._parts.clock()
        for name, seen in executor.inspect(list(found)).items():
            if seen.sight is Sight.ENDED and seen.end is not None:
                ends.append((name, seen.end))
            elif seen.sight is Sight.ABSENT:
                patience = 0.0 if at_start else _HAND_OVER_S
                if now - found[name].created_at >= patience and executor.refuse(name):
                    ends.append((name, End(None, None, "never_started", "reconciler", now)))
            elif found[name].stop_seq > seen.stop_seq:
                stop = Stop(found[name].stop_seq, "user", 0.0, "unknown", now)
                self._commands.pass_on(unit_of(found[name]), stop)
        if ends:
            self.ended(ends)

    def stop_all(self) -> int:
        """End this node's preparations because of a shutdown; their jobs go on waiting, and the
        next start goes on where they stopped. How many still live."""
        self.open = False
        now = self._parts.clock()

        def work(tx: Transaction) -> tuple[list[tuple[Preparation, Stop]], int]:
            live = tx.live_preparations(self._parts.node_id)
            asked = []
            for one in live:
                if one.stop_seq == 0:
                    changes = {"status": AttemptStatus.STOPPING, "stop_seq": 1}
                    tx.update_preparation(one.preparation_id, states.LIVE, **changes)
                    stop = Stop(1, "shutdown", preparation.GRACE_S, "server", now)
                    asked.append((one, stop))
            return asked, len(live)

        asked, living_count = self._parts.store.write(work, durable=False)
        for one, stop in asked:
            self._commands.pass_on(unit_of(one), stop)
        return living_count

    def _executor(self) -> Executor | None:
        return self._parts.executors.get(PREPARED_BY)


def _settles(here: Mapping[str, bool], job: Job) -> bool:
    """Whether there is nothing to pull for it now: its image is here, or nobody can say."""
    return here.get(job.spec.image or "") is not False


def _cancelled(tx: Transaction, job: Job, end: End) -> list[Job]:
    tx.apply(
        states.move(
            job.id,
            JobStatus.CANCELLING,
            JobStatus.CANCELLED,
            Event(events.JOB_CANCELLED, end.ended_at, _ACTOR),
            reason=cancel_reasons.asked_for(job),
            stage=None,
            ready=False,
            completed_at=end.ended_at,
        )
    )
    return readiness.after_end(tx, job, end.ended_at)


def _fail(tx: Transaction, job: Job, reason: Reason, now: float) -> list[Job]:
    tx.apply(
        states.move(
            job.id,
            job.status,
            JobStatus.FAILED,
            Event(events.JOB_FAILED, now, _ACTOR, params=dict(reason.params)),
            reason=reason,
            stage=None,
            ready=False,
            completed_at=now,
        )
    )
    return readiness.after_end(tx, job, now)
