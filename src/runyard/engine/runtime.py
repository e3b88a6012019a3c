"""The loops that keep a yard going, and the way it opens and closes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from runyard.domain import errors
from runyard.domain.job import Job
from runyard.domain.recovery.plan import as_mapping
from runyard.domain.states import JobStatus
from runyard.engine import server_log
from runyard.engine.access.actor import SYSTEM
from runyard.engine.cancel import unasked_stops
from runyard.engine.cancel.cancel_reasons import SHUTDOWN
from runyard.engine.cancel.leases import Leases
from runyard.engine.cancel.stale_cancels import StaleCancels
from runyard.engine.checkpoint.checkpointing import Checkpointing
from runyard.engine.checkpoint.resuming import Resuming
from runyard.engine.commands import Commands
from runyard.engine.end.ending import Ender
from runyard.engine.end.gpu_return import GpuReturn
from runyard.engine.end.news import NewsDesk
from runyard.engine.end.recorded_ends import Recorded
from runyard.engine.history.log_reading import LogReading
from runyard.engine.history.metric_history import MetricHistory
from runyard.engine.launch.launching import Launcher, Placed
from runyard.engine.loop import Loop
from runyard.engine.node.machines import Machines
from runyard.engine.parts import Parts
from runyard.engine.prepare.preparing import Preparer
from runyard.engine.reconcile import Found, Reconciler
from runyard.engine.retention import Retention
from runyard.engine.schedule.placing import Placer
from runyard.engine.schedule.space_waits import SpaceWaits
from runyard.engine.watch.collecting import Collecting
from runyard.engine.watch.peak_keeping import PeakKeeping
from runyard.engine.watch.service_news import ServiceNews
from runyard.engine.watch.watching import Watching
from runyard.executors.base import End
from runyard.stores.base import Transaction

_MEASURE_S = 5.0
_HEARTBEAT_S = 15.0
_BEATS_IN_A_LEASE = 5
_RETENTION_S = 3600.0
_LEASE_LOOK_S = 30.0  # leases that other servers of a shared store have given
_PREPARE_LOOK_S = 5.0  # a job whose dependencies are met wakes nobody
_SHUTDOWN_SLACK_S = 20.0
_SHUTDOWN_LOOK_S = 0.05


class Runtime:
    def __init__(
        self,
        parts: Parts,
        commands: Commands,
        machines: Machines,
        tag_of: Callable[[int], int | None],
    ) -> None:
        self._parts = parts
        self._commands = commands
        self._machines = machines
        self.placer = Placer(parts)
        self._gpu_return = GpuReturn(parts, tag_of)
        commands.before_stop = self._gpu_return.note_use_of
        self.launcher = Launcher(parts, self._gpu_return.remember, self._not_handed_over)
        self.ender = Ender(parts, self.placer, self.wake)
        self.space_waits = SpaceWaits(parts, self.wake)
        self.ender.waits_for_space = self._await_space
        self.ender.look_at_nodes = self._look_at_nodes
        self._news = NewsDesk(
            self.ender,
            self.launcher,
            self._gpu_return,
            look_again=lambda: self._reconciling.wake(),
            stuck=lambda attempt_id, stuck: self._reconciler.stuck(attempt_id, stuck),
            prepared=lambda ends: self.preparer.ended(ends),
            service=ServiceNews(parts).heard,
            stopping=lambda news: unasked_stops.heard(parts, news),
        )
        self._reconciler = Reconciler(parts, self.ender, commands, self._news.ended)
        self.preparer = Preparer(parts, commands, self._prepared)
        self._retention = Retention(parts)
        self.metric_history = MetricHistory(parts)
        self.log_reading = LogReading(parts, self.metric_history)
        self.checkpointing = Checkpointing(parts)
        self.log_reading.on_checkpoint(self.checkpointing.reported)
        self.ender.left = self._left
        self._reconciler.is_on_its_way = self.launcher.is_checking
        self.launcher.resuming = Resuming(parts, self.checkpointing)
        self.ender.before_plan = self.launcher.resuming.before_plan
        self.peak_keeping = PeakKeeping(parts)
        self.collecting = Collecting(parts)
        self.watching = Watching(parts, commands, self.wake)
        self._stale_cancels = StaleCancels(parts, commands)
        self.leases = Leases(parts, commands, self.wake)
        settings = parts.settings
        self._scheduling = Loop("scheduling", self._schedule, settings.resource_check_interval)
        measure_s = min(_MEASURE_S, settings.server_lease_s / _BEATS_IN_A_LEASE)
        self._measuring = Loop("measuring", self._measure, measure_s)
        interval = settings.reconcile_interval
        self._reconciling = Loop("reconciling", self._reconcile, interval, first_after=interval)
        self._retaining = Loop("retention", self._retain, _RETENTION_S, first_after=60)
        self._preparing = Loop("preparing", self.preparer.work, _PREPARE_LOOK_S)
        self._leasing = Loop("leases", self.leases.expire, _LEASE_LOOK_S)
        self._loops = (
            self._scheduling,
            self._measuring,
            self._reconciling,
            self._retaining,
            self._preparing,
            self._leasing,
        )
        self._heartbeat_s = min(_HEARTBEAT_S, settings.server_lease_s / _BEATS_IN_A_LEASE)
        self._heartbeat_due = 0.0
        self.shutting_down = False
        self.running = False

    # life

    def open(self) -> Found:
        """Adopt what lives, then begin to place jobs."""
        parts = self._parts
        parts.store.subscribe(parts.hub.publish)
        self._machines.load_decisions()
        parts.machine.refresh()
        self._news.start()
        for executor in parts.executors.values():
            executor.open(self._news.hear)
        self._look_at_executors()
        self._machines.register(epoch_grows=True)
        found = self._reconciler.adopt()
        self.leases.begin_again()
        self.preparer.reconcile(at_start=True)
        self.space_waits.load()
        self.placer.dispatching = True
        self.preparer.open = True
        parts.store.on_wake(self._woken)
        for loop in self._loops:
            loop.start()
        self.metric_history.start()
        self.log_reading.start()
        self.checkpointing.start()
        self.peak_keeping.start()
        self.collecting.start()
        self.watching.start()
        self.running = True
        return found

    def close(self, *, keep: bool) -> None:
        """Stop working. What still runs is left to the next start; with keep=False the helper
        processes of the executors end as well."""
        self.running = False
        self.stop_dispatching()
        for loop in self._loops:
            loop.stop()
        self.watching.stop()
        self.collecting.stop()
        self.log_reading.stop()
        self.checkpointing.stop()
        self.peak_keeping.stop()
        self.metric_history.stop()
        self._gpu_return.stopping = True
        for executor in self._parts.executors.values():
            executor.close(keep=keep)
        self._news.stop()
        self._parts.hub.close()

    def stop_dispatching(self) -> None:
        """No new start and no new job from now on: this server is going away."""
        self.shutting_down = True
        self.placer.dispatching = False
        self.preparer.open = False

    def end_all(
        self, force: Callable[[], bool] = lambda: False, patience_s: float | None = None
    ) -> bool:
        """Cancel every attempt of this node because of a shutdown, all at once, and wait for the
        proof; without grace from when `force` says so. False if some did not end in time."""
        self.stop_dispatching()
        jobs = self._own_jobs()
        if jobs:
            server_log.of().info("shutting down: cancelling {} running jobs", len(jobs))
        if patience_s is None:
            patience_s = max((job.spec.grace_s for job in jobs), default=0.0) + _SHUTDOWN_SLACK_S
        deadline = time.monotonic() + patience_s
        forced: set[int] = set()
        preparing = self.preparer.stop_all()
        while (jobs or preparing) and time.monotonic() < deadline:
            by_force = force()
            if by_force and not forced:
                deadline = min(deadline, time.monotonic() + _SHUTDOWN_SLACK_S)
            self._stop(jobs, by_force, forced)
            time.sleep(_SHUTDOWN_LOOK_S)
            # Again from the start: a placement may have been under way.
            jobs = self._own_jobs()
            preparing = self.preparer.stop_all()
        if jobs:
            server_log.of().critical("{} jobs could not be ended; they stay adoptable", len(jobs))
        return not jobs and not preparing

    def _stop(self, jobs: list[Job], force: bool, forced: set[int]) -> None:
        """Each job is asked once, and once more by force."""
        for job in jobs:
            if job.status is JobStatus.CANCELLING and (not force or job.id in forced):
                continue
            if force:
                forced.add(job.id)
            with contextlib.suppress(errors.AlreadyEnded):
                self._commands.cancel(job.ref, SYSTEM, force=force, cause=SHUTDOWN)

    def live_count(self) -> int:
        with self._parts.store.read() as reader:
            return len(reader.live_attempts(self._parts.node_id))

    def _own_jobs(self) -> list[Job]:
        """Read as a write, so that a pass that is being committed is seen."""

        def work(tx: Transaction) -> list[Job]:
            attempts = tx.live_attempts(self._parts.node_id)
            return tx.jobs_by_id([attempt.job_id for attempt in attempts])

        shared = self._parts.store.shared
        return self._parts.store.write(work, durable=False, exclusive=shared)

    def wake(self) -> None:
        """Something changed that may let a job start, here or on another server."""
        self._scheduling.wake()
        if self._parts.store.shared:
            self._parts.store.wake_others("queue")

    def leased(self) -> None:
        """A job was submitted whose lease may run out before the others."""
        self._leasing.wake()

    def prepare(self) -> None:
        """A job may need its preparation begun."""
        self._preparing.wake()

    def _prepared(self) -> None:
        self._preparing.wake()
        self.wake()

    # loops

    def _schedule(self) -> float | None:
        """Woken by whatever may let a job start; the tick is the safety net."""
        now = self._parts.clock()
        self._parts.machine.refresh_gpus()

        def work(tx: Transaction) -> tuple[list[Placed], float | None]:
            tx.wake_delayed(now)
            return self.placer.place(tx, now), tx.next_delayed()

        shared = self._parts.store.shared
        placed, due = self._parts.store.write(work, exclusive=shared)
        for started in placed:
            self.launcher.launch(started)
        if self.placer.unfinished:
            return 0.0
        return None if due is None else max(0.0, due - self._parts.clock())

    def _measure(self) -> float | None:
        changed = self._look_at_executors()
        if self._parts.machine.refresh() or changed:
            self.wake()
        if changed:
            self._heartbeat_due = 0.0
        now = time.monotonic()
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + self._heartbeat_s
            if not self._machines.register(epoch_grows=False):
                server_log.of().error("this server was silent: others have taken over from it")
                self._reconciling.wake()
        self._gpu_return.note_use()
        self.space_waits.look()
        return None

    def _look_at_executors(self) -> bool:
        """Whether another set of them can start something; also brings a dead keeper back."""
        machine = self._parts.machine
        before, lacked = machine.executors, machine.missing
        executors = self._parts.executors
        answers = {name: executor.available() for name, executor in executors.items()}
        machine.executors = tuple(
            name
            for name, (usable, _) in answers.items()
            if usable and executors[name].nodes() is None and self._takes_jobs(name)
        )
        machine.missing = {name: why for name, (usable, why) in answers.items() if not usable}
        for name in set(before) - set(machine.executors):
            why = machine.missing.get(name, "")
            server_log.of().error("the {} executor cannot start anything now: {}", name, why)
        changed = self._machines.executor_nodes.look()
        return changed or (machine.executors, machine.missing) != (before, lacked)

    def _look_at_nodes(self) -> None:
        """What the executors know of them is newer than what was measured last."""
        if self._machines.executor_nodes.look():
            self._heartbeat_due = 0.0
            self._measuring.wake()

    def _takes_jobs(self, name: str) -> bool:
        """The local executor is always there, for preparations. A server for a cluster gives it
        no jobs unless it was asked for, too."""
        asked = self._parts.settings.executors
        return name != "local" or name in asked or "ray" not in asked

    def _reconcile(self) -> float | None:
        if self._look_at_executors():  # one of them may have come back just now
            self.wake()
        self._reconciler.round()
        self._stale_cancels.look()
        self.preparer.reconcile(at_start=False)
        return None

    def _retain(self) -> float | None:
        self._retention.sweep()
        return None

    def _left(self, done: Recorded) -> None:
        self.log_reading.ended(done.attempt.attempt_id, wrote=done.wrote)
        if done.wrote:
            self.checkpointing.ended(done.job.id)

    def _await_space(self, done: Recorded) -> None:
        assert done.plan is not None
        due = self._parts.clock() + done.plan.delay_s
        self.space_waits.expect(done.job, done.attempt.number, as_mapping(done.plan), due)
        self._measuring.wake()

    def _woken(self, topic: str) -> None:
        """Another server of a shared store has news for us."""
        if topic == "stop":
            self._reconciling.wake()
        self._scheduling.wake()

    def _not_handed_over(self, placed: Placed) -> None:
        """A launch failed. If nothing of it can start any more, its end is recorded at once; else
        the executor is asked what became of it."""
        attempt = placed.attempt
        executor = self._parts.executors[attempt.executor]
        try:
            refused = executor.refuse(attempt.attempt_id)
        except OSError:
            refused = False  # a full disk: reconciling tries again
        if refused:
            end = End(None, None, "never_started", "server", self._parts.clock())
            self._news.later_ended([(attempt.attempt_id, end)])
        else:
            self._reconciling.wake()
