"""What is known of a job by watching it: progress, health, newest metrics, use of its time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from runyard.domain import events, reasons, states
from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.effective_time import AttemptTimes, EffectiveTime, effective_time
from runyard.domain.monitoring.series import Sample
from runyard.domain.progress.estimate import Eta
from runyard.domain.scheduling.estimate import Forecast
from runyard.domain.states import AttemptEnd
from runyard.engine.board import UNKNOWN, Board, Health, Progress
from runyard.stores.base import ActiveAttempt, Reader
from runyard.stores.base_metrics import MetricRange

# Those that tell most at a glance, the first of them first.
SHOWN = (
    "loss",
    "val_loss",
    "accuracy",
    "val_accuracy",
    "learning_rate",
    "grad_norm",
    "tokens_per_sec",
    "samples_per_sec",
    "steps_per_sec",
)
_STEPS_LOOKED_AT = 100  # of each attempt
_MOST_ATTEMPTS = 20
_KEPT = 512
_FRESH_S = 10.0
_ENDS = frozenset({events.JOB_COMPLETED, events.JOB_FAILED, events.JOB_CANCELLED})


@dataclass(frozen=True, slots=True)
class Watched:
    progress: Progress | None = None
    eta: Eta | None = None  # as seen now
    health: Health = UNKNOWN
    metrics: Mapping[str, float] = field(default_factory=dict)
    efficiency: EffectiveTime | None = None


def at_a_glance(board: Board, job: Job, now: float) -> Watched:
    """From memory only: for lists."""
    if job.status in states.ENDED:
        return Watched(health=_after_end(job))
    progress = board.progress(job.id)
    found = {name: sample.value for name, sample in board.latest(job.id).items() if name in SHOWN}
    return Watched(
        progress=progress,
        eta=_as_seen(progress.eta if progress else None, now),
        health=board.health(job.id),
        metrics={**_counts(progress), **found},
    )


def forecasts(board: Board, running: Sequence[ActiveAttempt], now: float) -> list[Forecast | None]:
    """When each of these will end by its own progress: (earliest, latest)."""
    told: list[Forecast | None] = []
    for attempt in running:
        progress = board.progress(attempt.job_id)
        eta = _as_seen(progress.eta if progress else None, now)
        told.append(None if eta is None else (now + eta.low, now + eta.high))
    return told


def _after_end(job: Job) -> Health:
    """What is known of an ended job's health: only what its end itself says."""
    if job.reason is None or job.reason.code != reasons.COMPLETED_WITH_NAN:
        return UNKNOWN
    return Health("critical", job.reason.code, job.reason.params, job.completed_at)


def _counts(progress: Progress | None) -> dict[str, float]:
    if progress is None:
        return {}
    told = {
        "step": progress.step,
        "total_steps": progress.total_steps,
        "epoch": progress.epoch,
        "total_epochs": progress.total_epochs,
    }
    return {name: value for name, value in told.items() if value is not None}


def _as_seen(eta: Eta | None, now: float) -> Eta | None:
    """It was worked out a moment ago."""
    if eta is None:
        return None
    age = max(0.0, now - (eta.at - eta.seconds))
    return replace(
        eta,
        seconds=max(0.0, eta.seconds - age),
        low=max(0.0, eta.low - age),
        high=max(0.0, eta.high - age),
    )


class Watching:
    """Looks closely at one job; what takes a query is kept for a moment."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._lock = Lock()
        self._kept: OrderedDict[tuple[int, str, int], tuple[float, EffectiveTime]] = OrderedDict()

    def closely(self, reader: Reader, job: Job, now: float) -> Watched:
        self._board.looked()
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
