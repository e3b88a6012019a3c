"""One running attempt under watch: what was seen of it, and what the detectors say about that."""

from __future__ import annotations

import os
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from runyard.domain import distributed, job_environment
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring import (
    idle_gpu,
    loss_divergence,
    loss_plateau,
    loss_spike,
    memory_leak,
    not_finite,
    slow_down,
    stalled_training,
)
from runyard.domain.monitoring.finding import Finding
from runyard.domain.monitoring.pace import Pace
from runyard.domain.monitoring.robust import finite
from runyard.domain.monitoring.series import Sample, Window
from runyard.domain.monitoring.stalled_training import Signs
from runyard.engine.watch.board import Board, Progress

LOSS, RSS, GPU_MEMORY, GPU_UTIL = "loss", "system.rss_mb", "gpu.memory_mb", "gpu.util"
RATES = "steps_per_sec"
CPU = "system.cpu_percent"
TAIL = 100  # the newest values of a loss
LOAD_S = 60.0
SLOW_EVERY_S = 60.0  # trends of hours are looked at so often
_DONE = 0.9999


@dataclass(frozen=True, slots=True)
class Limits:
    """Where memory ends, as far as that is known."""

    host_mb: float | None = None
    gpu_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    now: float  # of a monotonic clock
    wall: float


class WatchedJob:
    """`now` is of a monotonic clock, `wall` what clocks on walls show."""

    def __init__(self, job: Job, attempt: Attempt, files: Sequence[str], now: float) -> None:
        self.job, self.attempt = job, attempt
        self.pace = Pace(now)
        self._files = files  # log and metrics: what grows when it says something
        self.log = files[0]  # of the first rank
        self._sizes: list[int] = []
        self._grew_at = now
        self._rates = Window(RATES, 1000)
        self._losses = Window(LOSS, 1000)  # one for each look, so that they cover hours
        self._loss_at = float("-inf")
        self._tails: dict[str, deque[Sample]] = {}
        self._seen: dict[str, Sample] = {}
        self._found: dict[str, Finding | None] = {}
        self._slow_at: dict[str, float] = {}

    def look(
        self, board: Board, moment: Moment, floor_s: float, limits: Limits, off: Sequence[str]
    ) -> dict[str, Finding]:
        """Findings by what they are about: the code, with a name where there may be several."""
        latest = board.latest(self.job.id)
        progress = board.progress(self.job.id)
        self._note(progress, moment)
        new = {name for name, sample in latest.items() if not _same(self._seen.get(name), sample)}
        before, self._seen = self._seen, latest
        started = self.attempt.started_at or self.attempt.created_at
        for name in new:
            if not_finite.watches(name):
                last = before.get(name)
                self._take(name, board.window(self.job.id, name, last.at if last else None), last)
        if LOSS in new:
            self._look_at_loss(board, progress.fraction if progress else None, moment)
        self._look_at_memory(board, new, limits, started, moment)
        if GPU_UTIL in new:
            find = partial(self._idle, board, moment.wall, started)
            self._slowly(idle_gpu.CODE, moment, find)
        self._look_at_pace(board, progress, moment, floor_s)
        return {
            about: finding
            for about, finding in self._found.items()
            if finding is not None and finding.code not in off
        }

    # what is seen

    def _note(self, progress: Progress | None, moment: Moment) -> None:
        mark = None if progress is None else _mark(progress)
        rate = self.pace.note(mark, progress.phase if progress else None, moment.now)
        if rate is not None and progress is not None and progress.step is not None:
            self._rates.append(Sample(RATES, moment.wall, rate, progress.step))
            self._keep(slow_down.CODE, slow_down.find(self._rates.samples()))

    def _take(self, name: str, window: Sequence[Sample], last: Sample | None) -> None:
        """Of a series that must be finite: only what came since the last look is read."""
        came = _after(window, last)
        kept = self._tails.setdefault(name, deque(maxlen=TAIL))
        kept.extend(came)
        self._keep(f"{not_finite.CODE}:{name}", not_finite.find(list(kept), len(came)))

    # what is concluded

    def _look_at_loss(self, board: Board, fraction: float | None, moment: Moment) -> None:
        tail = list(self._tails.get(LOSS, ()))
        known = finite([sample for sample in tail if sample.at > self._loss_at])
        if known:
            self._loss_at = known[-1].at
            middle = statistics.median(sample.value for sample in known)
            self._losses.append(Sample(LOSS, moment.wall, middle, known[-1].step))
        self._keep(loss_spike.CODE, loss_spike.find(tail))
        self._slowly(loss_divergence.CODE, moment, partial(self._divergence, board))
        self._slowly(loss_plateau.CODE, moment, partial(self._plateau, fraction))

    def _divergence(self, board: Board) -> Finding | None:
        """On the newest values, and on hours of them."""
        newest = loss_divergence.find(board.window(self.job.id, LOSS))
        return newest or loss_divergence.find(self._losses.samples())

    def _plateau(self, fraction: float | None) -> Finding | None:
        return loss_plateau.find(self._losses.samples(), fraction)

    def _idle(self, board: Board, wall: float, started: float) -> Finding | None:
        used = board.window(self.job.id, GPU_UTIL, wall - idle_gpu.FOR_S)
        return idle_gpu.find(used, now=wall, started_at=started)

    def _look_at_memory(
        self, board: Board, new: set[str], limits: Limits, started: float, moment: Moment
    ) -> None:
        watched = ((RSS, "host", limits.host_mb), (GPU_MEMORY, "gpu", limits.gpu_mb))
        for name, kind, limit in watched:
            if name in new:
                find = partial(self._leak, board, name, started, kind, limit)
                self._slowly(f"{memory_leak.CODE}:{kind}", moment, find)

    def _leak(
        self, board: Board, name: str, started: float, kind: str, limit: float | None
    ) -> Finding | None:
        used = board.window(self.job.id, name)
        return memory_leak.find(used, started_at=started, limit_mb=limit, kind=kind)

    def _look_at_pace(
        self, board: Board, progress: Progress | None, moment: Moment, floor_s: float
    ) -> None:
        fraction = progress.fraction if progress else None
        done = fraction is not None and fraction >= _DONE
        quiet = self._quiet(moment.now)
        silent = self.pace.seen_at is None and quiet > stalled_training.SILENT * floor_s
        signs = Signs(done=done, quiet_s=quiet)
        if silent or stalled_training.find(self.pace, moment.now, floor_s, signs):
            # Only now is it worth the while to see how busy it is.
            since = moment.wall - max(quiet, LOAD_S)
            cpu = _most(board.window(self.job.id, CPU, since))
            signs = replace(
                signs, cpu_percent=cpu, gpu_util=_most(board.window(self.job.id, GPU_UTIL, since))
            )
        found = stalled_training.find(self.pace, moment.now, floor_s, signs)
        self._keep(stalled_training.CODE, found)

    def _quiet(self, now: float) -> float:
        """Seconds since its log or its metrics grew."""
        sizes = [_size(path) for path in self._files]
        if sizes != self._sizes:
            self._sizes, self._grew_at = sizes, now
        return now - self._grew_at

    def _slowly(self, about: str, moment: Moment, find: Callable[[], Finding | None]) -> None:
        if moment.now - self._slow_at.get(about, float("-inf")) >= SLOW_EVERY_S:
            self._slow_at[about] = moment.now
            self._keep(about, find())

    def _keep(self, about: str, found: Finding | None) -> None:
        self._found[about] = found


def files_of(run_dir: str, log_path: Callable[[int], str], job: Job) -> tuple[str, ...]:
    """Of all ranks: one that waits for another that still works is no stall."""
    shape = job.spec.distributed
    metrics = os.path.join(run_dir, job_environment.METRICS_FILE)
    if shape is None:
        return log_path(0), metrics
    logs = tuple(log_path(rank) for rank in distributed.logged_ranks(shape))
    ranks = range(shape.world_size)
    return (*logs, *(distributed.metrics_file(metrics, rank) for rank in ranks))


def _mark(progress: Progress) -> float | None:
    """Whatever tells that it came forward."""
    for known in (progress.step, progress.epoch, progress.fraction):
        if known is not None:
            return known
    return None


def _same(one: Sample | None, other: Sample) -> bool:
    """NaN, which equals nothing, included."""
    if one is None or (one.at, one.step) != (other.at, other.step):
        return False
    return one.value == other.value or (one.value != one.value and other.value != other.value)


def _after(window: Sequence[Sample], last: Sample | None) -> Sequence[Sample]:
    """What follows `last`; lines that were read together have the same time."""
    if last is None:
        return window
    for place in range(len(window) - 1, -1, -1):
        if _same(last, window[place]):
            return window[place + 1 :]
    return window


def _most(samples: Sequence[Sample]) -> float | None:
    return max((sample.value for sample in finite(samples)), default=None)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
