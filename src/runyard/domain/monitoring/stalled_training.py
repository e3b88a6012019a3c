"""A training that no longer comes forward, judged by its own steps and nothing else.

A heartbeat thread that prints, a growing log and a busy CPU or GPU are no progress: programs that
hang in a collective do all of that for days. Only where a program tells no steps at all, silence
together with idleness is taken for a stall, and much later.
"""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding
from runyard.domain.monitoring.pace import Pace
from runyard.domain.progress.phases import PAUSES

CODE = "stalled_training"
TIMES_USUAL = 8.0  # the usual time between steps
TIMES_SLOWEST = 3.0  # the slowest recent one, which was a pause that nobody named
LEARNED = 3  # gaps from which a budget can be learned
WIDER = 3.0  # loading, first step, evaluation, saving
SILENT = 6.0  # programs that tell no step
IDLE_CPU = 2.0  # percent of one core
IDLE_GPU = 5.0


@dataclass(frozen=True, slots=True)
class Signs:
    """What else is known of the attempt; it explains a stall, and is a proof only in silence."""

    done: bool = False  # every step is done: what is left is evaluation, saving, leaving
    quiet_s: float | None = None  # since the log or the metrics last grew
    cpu_percent: float | None = None  # the most during the silence
    gpu_util: float | None = None


def find(pace: Pace, now: float, floor_s: float, signs: Signs) -> Finding | None:
    """`floor_s` is the least anybody waits; `now` is of the clock of `pace`."""
    if pace.seen_at is None:
        return _silence(pace, now, floor_s, signs)
    waited, allowed = now - pace.seen_at, budget(pace, floor_s, done=signs.done)
    if waited <= allowed:
        return None
    params = {
        "basis": "steps",
        "seconds": round(waited),
        "budget_s": round(allowed),
        "step": pace.step,
        "phase": pace.phase,
    }
    return Finding(CODE, AlertLevel.ERROR, params, _told(signs))


def budget(pace: Pace, floor_s: float, *, done: bool = False) -> float:
    """Seconds without a new step that are in order."""
    usual, slowest = pace.usual_gap, max(pace.gaps, default=0.0)
    learned = max(TIMES_USUAL * (usual or 0.0), TIMES_SLOWEST * slowest)
    pause = TIMES_SLOWEST * max(pace.pauses, default=0.0)
    apart = done or pace.phase in PAUSES or len(pace.gaps) < LEARNED
    return max(WIDER * floor_s if apart else floor_s, learned, pause)


def _silence(pace: Pace, now: float, floor_s: float, signs: Signs) -> Finding | None:
    """No step was ever told."""
    allowed = SILENT * floor_s
    quiet = min(now - pace.began, signs.quiet_s if signs.quiet_s is not None else 0.0)
    if quiet <= allowed or signs.cpu_percent is None or signs.cpu_percent >= IDLE_CPU:
        return None
    if signs.gpu_util is not None and signs.gpu_util >= IDLE_GPU:
        return None
    params = {
        "basis": "silence",
        "seconds": round(quiet),
        "budget_s": round(allowed),
        "step": None,
        "phase": pace.phase,
    }
    return Finding(CODE, AlertLevel.WARNING, params, _told(signs))


def _told(signs: Signs) -> dict[str, object]:
    return {
        "quiet_s": None if signs.quiet_s is None else round(signs.quiet_s),
        "cpu_percent": signs.cpu_percent,
        "gpu_util": signs.gpu_util,
    }
