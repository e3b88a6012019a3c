"""What is known of a job by watching it: progress, health, newest metrics, use of its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from runyard.domain import reasons, states
from runyard.domain.job import Job
from runyard.domain.monitoring.effective_time import EffectiveTime
from runyard.domain.progress.estimate import Eta
from runyard.domain.scheduling.estimate import Forecast
from runyard.engine.watch.board import UNKNOWN, Board, Health, Progress
from runyard.stores.base import ActiveAttempt

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
