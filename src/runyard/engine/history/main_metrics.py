"""The main metric of each job with a small curve, for lists: read once, and kept for a while."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from runyard.domain import states
from runyard.domain.job import Job
from runyard.domain.monitoring import main_metric
from runyard.engine.watch.board import Board
from runyard.stores.base import Reader

POINTS = 64
_KEPT = 5000
_FRESH_S = 10.0


@dataclass(frozen=True, slots=True)
class MainMetric:
    name: str
    direction: str  # min or max
    last: float
    best: float | None  # of the finite ones
    points: tuple[float, ...]  # at most POINTS, extremes kept


class MainMetrics:
    """What a running job tells is newer than what is kept: its last value is read each time."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[tuple[str, int], float, MainMetric | None]] = (
            OrderedDict()
        )

    def of(self, reader: Reader, jobs: Iterable[Job], now: float) -> dict[int, MainMetric]:
        """By job id; jobs that tell nothing are left out."""
        found = {}
        for job in jobs:
            if job.attempt_number and (one := self._one(reader, job, now)) is not None:
                found[job.id] = one
        return found

    def _one(self, reader: Reader, job: Job, now: float) -> MainMetric | None:
        key = (job.status.value, job.attempt_number)
        with self._lock:
            kept = self._kept.get(job.id)
        if kept is not None and kept[0] == key and _is_good(job, kept[1], now):
            return self._newest(job, kept[2])
        made = _read(reader, job)
        with self._lock:
            self._kept[job.id] = (key, now, made)
            self._kept.move_to_end(job.id)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return self._newest(job, made)

    def _newest(self, job: Job, kept: MainMetric | None) -> MainMetric | None:
        if job.status in states.ENDED:
            return kept
        window = {} if kept is not None else self._board.latest(job.id)
        name = kept.name if kept is not None else main_metric.choose(window)
        samples = self._board.window(job.id, name) if name is not None else []
        if name is None or not samples:
            return kept
        way, last = main_metric.direction(name), samples[-1].value
        if kept is None:
            values = [sample.value for sample in samples]
            return MainMetric(
                name, way, last, main_metric.best(values, way), tuple(values[-POINTS:])
            )
        known = [last] if kept.best is None else [last, kept.best]
        points = kept.points if kept.last == last else (*kept.points[1 - POINTS :], last)
        return MainMetric(name, way, last, main_metric.best(known, way), points)


def _is_good(job: Job, made_at: float, now: float) -> bool:
    """The last points of a job that ended may be on their way to the store for a moment."""
    if job.status in states.ENDED and job.completed_at is not None:
        return made_at > job.completed_at + _FRESH_S or 0 <= now - made_at < 1.0
    return 0 <= now - made_at < _FRESH_S


def _read(reader: Reader, job: Job) -> MainMetric | None:
    name = main_metric.choose(reader.metric_names(job.id))
    if name is None:
        return None
    values = [one.value for one in reader.metric_series(job.id, name, POINTS).samples]
    if not values:
        return None
    way = main_metric.direction(name)
    return MainMetric(name, way, values[-1], main_metric.best(values, way), tuple(values))
