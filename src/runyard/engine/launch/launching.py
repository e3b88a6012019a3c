"""Placed attempts become running supervisors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from runyard.domain.job import Attempt, Job
from runyard.engine import server_log
from runyard.engine.checkpoint.resuming import Resuming
from runyard.engine.launch import launch_plan
from runyard.engine.launch.starts import AS_SUBMITTED, Start
from runyard.engine.parts import Parts
from runyard.executors.base import ExecutorUnavailable

CHECKING_S = 600.0  # that choosing a checkpoint may take


@dataclass(frozen=True, slots=True)
class Placed:
    """A committed placement that this node must start."""

    job: Job
    attempt: Attempt
    start: Start = AS_SUBMITTED


class Launcher:
    def __init__(
        self,
        parts: Parts,
        before: Callable[[Attempt], None],
        failed: Callable[[Placed], None],
    ) -> None:
        self._parts = parts
        self._before = before
        self._failed = failed
        self._base_env = launch_plan.base_environment()
        self.resuming: Resuming | None = None
        self._checking: dict[str, float] = {}  # attempt -> since when its checkpoint is chosen

    def launch(self, placed: Placed) -> None:
        """Hand the attempt to its executor. One that goes on where another was cut off is handed
        over a little later: what it goes on from is checked first."""
        if self.resuming is None or not self.resuming.may_resume(placed.job, placed.attempt):
            self._start(placed)
            return
        self._checking[placed.attempt.attempt_id] = time.monotonic()
        name = f"resume {placed.attempt.attempt_id}"
        threading.Thread(target=self._resume, args=(placed,), name=name, daemon=True).start()

    def _resume(self, placed: Placed) -> None:
        assert self.resuming is not None
        path = None
        try:
            path = self.resuming.path(placed.job, placed.attempt)
        except Exception as error:
            log = server_log.of(placed.job.ref, placed.attempt.attempt_id)
            log.opt(exception=error).error("no checkpoint could be chosen: it begins anew")
        try:
            self._start(replace(placed, start=replace(placed.start, resume_from=path)))
        finally:
            self._checking.pop(placed.attempt.attempt_id, None)

    def is_checking(self, attempt_id: str) -> bool:
        """Whether it is on its way, however long a slow disk takes: nothing of it is there yet,
        and yet it is not lost. One that hangs is given up some time."""
        since = self._checking.get(attempt_id)
        return since is not None and time.monotonic() - since < CHECKING_S

    def _start(self, placed: Placed) -> None:
        log = server_log.of(placed.job.ref, placed.attempt.attempt_id)
        parts = self._parts
        if placed.attempt.slices and parts.store.shared and parts.machine.is_silent():
            log.error("not handed over: nobody heard of this server for longer than its lease")
            self._failed(placed)
            return
        self._before(placed.attempt)
        self._count(placed)
        job, attempt, settings = placed.job, placed.attempt, parts.settings
        try:
            plan = launch_plan.of(job, attempt, placed.start, settings, self._base_env)
            parts.executors[attempt.executor].start(plan)
        except (ExecutorUnavailable, OSError) as error:
            log.error("could not be handed to its executor: {}", error)
            self._failed(placed)
            return
        log.debug("handed to the {} executor: {}", placed.attempt.executor, placed.job.spec.name)

    def _count(self, placed: Placed) -> None:
        job, tallies = placed.job, self._parts.tallies
        since = max(job.queued_at, job.not_before or 0.0)
        tallies.starts.add(placed.attempt.executor)
        tallies.wait_s.add(max(0.0, self._parts.clock() - since))
