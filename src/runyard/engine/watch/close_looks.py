"""A close look at one job: also what has to be asked of the store, such as the use of its time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from runyard.domain import events
from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.effective_time import AttemptTimes, EffectiveTime, effective_time
from runyard.domain.monitoring.series import Sample
from runyard.domain.states import AttemptEnd
from runyard.engine.watch import watchers
from runyard.engine.watch.board import Board
from runyard.engine.watch.watched import SHOWN, Watched, at_a_glance
from runyard.stores.base import Reader
from runyard.stores.base_metrics import MetricRange

_STEPS_LOOKED_AT = 100  # of each attempt
_MOST_ATTEMPTS = 20
_KEPT = 512
_FRESH_S = 10.0
_ENDS = frozenset({events.JOB_COMPLETED, events.JOB_FAILED, events.JOB_CANCELLED})


class CloseLooks:
    """What takes a query is kept for a moment."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._lock = Lock()
        self._kept: OrderedDict[tuple[int, str, int], tuple[float, EffectiveTime]] = OrderedDict()

    def at(self, reader: Reader, job: Job, now: float) -> Watched:
        self._board.watchers.watch(watchers.SYSTEM)
        found = at_a_glance(self._board, job, now)
        if job.attempt_number == 0:
            return found
        if not found.metrics:  # it has ended, or runs under another server
            found = replace(found, metrics=_stored(reader, job))
        return replace(found, efficiency=self._efficiency(reader, job, now))

    def _efficiency(self, reader: Reader, job: Job, now: float) -> EffectiveTime:
        key = (job.id, job.status.value, job.attempt_number)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and 0 <= now - kept[0] < _FRESH_S:
            return kept[1]
        found = _efficiency(reader, job, now)
        with self._lock:
            self._kept[key] = (now, found)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def _stored(reader: Reader, job: Job) -> dict[str, float]:
    names = set(reader.metric_names(job.id))
    found: dict[str, float] = {}
    newest: Sample | None = None
    for name in (*SHOWN, "epoch"):
        if name not in names:
            continue
        for sample in reader.metric_tail(job.id, job.attempt_number, name, 1):
            found[name] = sample.value
            if sample.step is not None and (newest is None or sample.step > (newest.step or 0)):
                newest = sample
    if newest is not None and newest.step is not None:
        found["step"] = newest.step
    return found


def _efficiency(reader: Reader, job: Job, now: float) -> EffectiveTime:
    attempts = [one for one in reader.attempts(job.id) if one.started_at is not None]
    name = _stepped_name(reader, job)
    times = [_times(reader, job, one, name) for one in attempts[-_MOST_ATTEMPTS:]]
    aside = _set_aside(reader.events(job.id, limit=1000)) if len(attempts) > 1 else []
    return effective_time(job.submitted_at, times, now, set_aside=aside)


def _stepped_name(reader: Reader, job: Job) -> str | None:
    """A metric of the training itself, whose steps tell when it stepped."""
    names = reader.metric_names(job.id)
    own = [name for name in names if not name.startswith(("system.", "gpu.", "val_"))]
    return next((name for name in SHOWN if name in own), own[0] if own else None)


def _times(reader: Reader, job: Job, attempt: Attempt, name: str | None) -> AttemptTimes:
    steps: list[tuple[float, int]] = []
    if name is not None:
        chosen = MetricRange(attempt=attempt.number)
        found = reader.metric_series(job.id, name, _STEPS_LOOKED_AT, chosen).samples
        steps = sorted((one.at, one.step) for one in found if one.step is not None)
    return AttemptTimes(
        started_at=attempt.started_at or attempt.created_at,
        ended_at=attempt.ended_at,
        completed=attempt.end is AttemptEnd.COMPLETED,
        steps=steps,
    )


def _set_aside(told: Sequence[StoredEvent]) -> list[tuple[float, float]]:
    aside: list[tuple[float, float]] = []
    ended: float | None = None
    for one in told:
        if one.event.code in _ENDS:
            ended = one.event.at
        elif one.event.code == events.JOB_RETRIED and ended is not None:
            aside.append((ended, max(ended, one.event.at)))
            ended = None
    return aside
