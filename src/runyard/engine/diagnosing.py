"""Why an attempt failed: what is known of its end is gathered, bounded, and classified."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from runyard.domain import ending, job_environment, reasons
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.failures.evidence import (
    Evidence,
    LastMetrics,
    RankLog,
)
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.series import Sample
from runyard.domain.progress import hints, reported
from runyard.domain.progress.point import Point
from runyard.domain.progress.reading import Reader as LogReader
from runyard.domain.states import JobStatus
from runyard.engine import diverged, host_facts, rank_logs, story
from runyard.engine.parts import Parts
from runyard.executors import log_ends
from runyard.executors.base import End, Executor
from runyard.executors.log_ends import LogEnds
from runyard.executors.log_tail import lines_between
from runyard.supervisor import journal

LOSSES = ("loss", "train/loss", "train_loss")
_METRIC_LINES = 150  # of the log, read for what came last
_METRIC_BYTES = 64 * 1024  # of the metrics file


class Diagnoser:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def of_ends(
        self, ends: Sequence[tuple[str, End]], wrote_nothing: Collection[str] = ()
    ) -> dict[str, Diagnosis]:
        """Of those that failed, or ended well with a loss that is no number. Never raises: an end
        is recorded whatever becomes of this."""
        failed = [
            (name, end)
            for name, end in ends
            if may_have_failed(end)
            or (name not in wrote_nothing and diverged.may_have(self._parts, name))
        ]
        found: dict[str, Diagnosis] = {}
        for name, end in failed:
            try:
                known = self._of_end(name, end)
            except Exception as error:
                log = story.of(name.rpartition(".")[0], name)
                log.opt(exception=error).error("why it failed could not be worked out")
                continue
            if known is not None:
                found[name] = known
        return found

    def again(self, job: Job, attempt: Attempt) -> Diagnosis | None:
        """Of an attempt that has ended, by what is still there of it."""
        end = self._recorded(attempt)
        return rank_logs.classified(self._evidence(job, attempt, end))

    def _of_end(self, name: str, end: End) -> Diagnosis | None:
        with self._parts.store.read() as reader:
            attempt = reader.attempt(name)
            job = None if attempt is None else reader.job(attempt.job_id)
        if attempt is None or job is None or job.status is JobStatus.CANCELLING:
            return None
        return rank_logs.classified(self._evidence(job, attempt, end))

    def _recorded(self, attempt: Attempt) -> End:
        """The end record if it is still here, else what the store kept of it."""
        executor = self._parts.executors.get(attempt.executor)
        if executor is not None and attempt.node_id == self._parts.node_id:
            seen = executor.inspect([attempt.attempt_id]).get(attempt.attempt_id)
            if seen is not None and seen.end is not None:
                return seen.end
        return End(
            attempt.exit_code,
            attempt.signal,
            attempt.cause or "unknown",
            "server",
            attempt.ended_at or attempt.created_at,
            attempt.started_at,
            _detail(attempt),
        )

    def _evidence(self, job: Job, attempt: Attempt, end: End) -> Evidence:
        ends, shape = LogEnds(), job.spec.distributed
        logs: tuple[RankLog, ...] = ()
        executor = self._parts.executors.get(attempt.executor)
        if executor is not None and attempt.node_id == self._parts.node_id:
            path = partial(executor.log_path, attempt.attempt_id, "")
            ends = log_ends.read(path(0))
            logs = () if shape is None else rank_logs.of_end(path, shape, end)
        pids = self._pids(executor, attempt)
        stopping = job.reason if job.reason and job.reason.code == reasons.STOPPING else None
        return Evidence(
            exit_code=end.code,
            signal=end.signal,
            cause=end.cause,
            detail=end.detail,
            stop_cause=(end.receipt.get("stop") or {}).get("cause"),
            rule=None if stopping is None else stopping.params.get("rule"),
            oom_kills=int(end.detail.get("oom_kills") or 0),
            logs=logs or (rank_logs.of_rank(0, ends, end.ended_at),),
            world_size=1 if shape is None else shape.world_size,
            metrics=self._metrics(job, attempt, ends),
            host=host_facts.of_end(self._parts, job, attempt, end, pids),
            own_pids=pids,
        )

    def _pids(self, executor: Executor | None, attempt: Attempt) -> frozenset[int]:
        """Those that were seen while it ran, by whoever looked."""
        seen = self._parts.board.pids(attempt.job_id, attempt.number)
        if executor is None or attempt.node_id != self._parts.node_id:
            return seen
        ranks = (one.get("pid") for one in executor.ranks(attempt.attempt_id))
        run_dir = self._parts.settings.data_dir / "attempts" / attempt.attempt_id
        return seen | {pid for pid in (*ranks, _main_pid(str(run_dir))) if pid}

    def _metrics(self, job: Job, attempt: Attempt, ends: LogEnds) -> LastMetrics:
        """What the board knows, and what was written since it was last told."""
        board = self._parts.board
        current = job.attempt_number == attempt.number
        told: list[Sample] = []
        if current:
            told = next((seen for name in LOSSES if (seen := board.window(job.id, name))), [])
        losses = [(sample.step, sample.value) for sample in told]
        steps = [step for step, _ in losses if step is not None]
        progress = board.progress(job.id) if current else None
        if progress is not None and progress.step is not None:
            steps.append(progress.step)
        for point in self._last_points(job, attempt, ends):
            if point.step is not None:
                steps.append(point.step)
            value = next((point.values[name] for name in LOSSES if name in point.values), None)
            if value is not None:
                losses.append((point.step, value))
        if not losses:
            return LastMetrics(step=max(steps, default=None), first_step=min(steps, default=None))
        last = losses[-1][1]
        return LastMetrics(
            step=max(steps, default=None),
            first_step=min(steps, default=None),
            loss=last,
            loss_finite=math.isfinite(last),
            first_bad_step=_first_bad(losses),
        )

    def _last_points(self, job: Job, attempt: Attempt, ends: LogEnds) -> list[Point]:
        run_dir = self._parts.settings.data_dir / "attempts" / attempt.attempt_id
        path = os.path.join(run_dir, job_environment.METRICS_FILE)
        at = attempt.created_at
        points: list[Point] = []
        size = _size(path)
        for text in lines_between(path, max(0, size - _METRIC_BYTES), size):
            found = reported.parse_line(text, at)
            if isinstance(found, Point):
                points.append(found)
        if points:
            return points
        reader = LogReader(hints.from_command(job.spec.command))
        for _, text in ends.tail[-_METRIC_LINES:]:
            for part in text.split("\r")[-20:]:
                points += reader.feed(part, at)
        return points + reader.finish()


def may_have_failed(end: End) -> bool:
    """Neither a success nor an end that somebody asked for."""
    if end.cause in ending.CANCELLED:
        stop = (end.receipt.get("stop") or {}).get("cause")
        return stop is not None and stop not in ending.ASKED_FOR
    return end.code != 0 or end.cause != "exited"


def summary(diagnosis: Diagnosis) -> dict[str, Any]:
    """What a reason says of it."""
    told: dict[str, Any] = {
        "failure_type": diagnosis.failure_type.value,
        "category": diagnosis.category.value,
    }
    if diagnosis.root is not None:
        told["line"] = diagnosis.root.text
    return told


def _main_pid(run_dir: str) -> int | None:
    try:
        job = journal.read(run_dir).job
    except OSError:
        return None
    return None if job is None else job["pid"]


def _detail(attempt: Attempt) -> dict[str, Any]:
    """Of an end whose record is gone: what its receipt kept of it."""
    kept = attempt.receipt or {}
    ranks = {name: kept[name] for name in ("rank", "ranks") if kept.get(name) is not None}
    return {**(kept.get("service_failure") or {}), **ranks}


def _first_bad(losses: Sequence[tuple[int | None, float]]) -> int | None:
    """Where the loss first was no number and stayed so."""
    found = None
    for step, value in reversed(losses):
        if math.isfinite(value):
            break
        found = step if step is not None else found
    return found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
