"""The drill `nan`: a clone is held still, a loss that is no number is told for it as it would tell
one itself, and when the detectors have had their look it is ended as a rule would end it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from runyard.domain import errors, job_environment
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring import not_finite
from runyard.domain.monitoring.alert import AlertFilter
from runyard.engine import server_log
from runyard.engine.cancel.unasked_stops import RETRY, Why
from runyard.engine.commands import Commands
from runyard.engine.drill import drill_faults
from runyard.engine.parts import Parts
from runyard.engine.recover import last_metrics

RULE = "drill nan"
_LINES = 3  # so many in a row are no accident to a detector
_PATIENCE_S = 60.0  # for the detectors, beside two looks of theirs
_LOOK_S = 0.1
# The folder is the job's too: a link there could lead anywhere, a pipe could hold us up.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Divergence:
    def __init__(self, parts: Parts, commands: Commands) -> None:
        self._parts = parts
        self._commands = commands

    def begin(
        self, job: Job, attempt: Attempt, belongs: drill_faults.Belongs, good_step: int
    ) -> dict[str, Any]:
        """Tell the losses; what ends it goes on in a thread of its own."""
        progress = self._parts.board.progress(job.id)
        if progress is None or progress.step is None or progress.step < good_step:
            raise errors.DrillTooEarly(job=job.ref, waits_for="first step")
        bad_step = progress.step + 1
        # What it computed next would be a good loss again, and nobody would believe the bad one.
        held = drill_faults.freeze(belongs)
        self._tell(job, attempt, bad_step)
        threading.Thread(
            target=self._end, args=(job, attempt), name="drill-nan", daemon=True
        ).start()
        return {"processes": held, "bad_step": bad_step}

    def _tell(self, job: Job, attempt: Attempt, bad_step: int) -> None:
        known = self._parts.board.names(job.id)
        name = next((one for one in last_metrics.LOSSES if one in known), last_metrics.LOSSES[0])
        folder = self._parts.settings.data_dir / "attempts" / attempt.attempt_id
        lines = "".join(
            f'{{"step": {step}, "{name}": NaN}}\n' for step in range(bad_step, bad_step + _LINES)
        )
        file = os.open(folder / job_environment.METRICS_FILE, _FLAGS, 0o644)
        try:
            os.write(file, f"\n{lines}".encode())  # it may have been held inside a line
        finally:
            os.close(file)

    def _end(self, job: Job, attempt: Attempt) -> None:
        patience = _PATIENCE_S + 2 * self._parts.settings.monitoring_interval
        noticed = _until(lambda: self._is_noticed(job, attempt), patience)
        if not noticed:
            server_log.of(job.ref, attempt.attempt_id).warning(
                "drill: no detector saw the bad loss"
            )
        self._commands.stop(job.ref, Why("rule", "drill", RETRY, RULE), grace_s=0.0)

    def _is_noticed(self, job: Job, attempt: Attempt) -> bool:
        with self._parts.store.read() as reader:
            page = reader.alerts(AlertFilter(codes=(not_finite.CODE,), job_id=job.id))
        return any(one.attempt_id == attempt.attempt_id for one in page.alerts)


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(_LOOK_S)
    return False
