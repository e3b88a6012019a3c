"""Metrics, time left, health and use of time as answers. JSON has no NaN: it travels as a word."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runyard.api.json_body import iso
from runyard.domain.monitoring.effective_time import EffectiveTime
from runyard.domain.progress.estimate import Eta
from runyard.engine.history.main_metrics import MainMetric
from runyard.engine.watch.board import Health
from runyard.stores.base_metrics import Series


def number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def series(found: Mapping[str, Series]) -> dict[str, Any]:
    return {"series": {name: _one(part) for name, part in found.items()}}


def _one(found: Series) -> dict[str, Any]:
    return {
        "steps": [sample.step for sample in found.samples],
        "times": [sample.at for sample in found.samples],
        "values": [number(sample.value) for sample in found.samples],
        "sampled": found.sampled,
    }


def latest(found: Mapping[str, float]) -> dict[str, float | str]:
    return {name: number(value) for name, value in found.items()}


def main_metric(found: MainMetric | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "name": found.name,
        "direction": found.direction,
        "last": number(found.last),
        "best": found.best,
        "points": [number(float(f"{value:.6g}")) for value in found.points],
    }


def eta(found: Eta | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "seconds": round(found.seconds, 3),
        "low": round(found.low, 3),
        "high": round(found.high, 3),
        "at": iso(found.at),
        "basis": found.basis,
    }


def health(found: Health) -> dict[str, Any]:
    return {
        "level": found.level,
        "code": found.code,
        "params": dict(found.params),
        "since": iso(found.since),
    }


def efficiency(found: EffectiveTime | None) -> dict[str, Any] | None:
    if found is None:
        return None
    losses = found.losses
    return {
        "ratio": None if found.ratio is None else round(found.ratio, 4),
        "productive_s": round(found.productive_s, 3),
        "wall_s": round(found.wall_s, 3),
        "losses": {
            "queue": round(losses.queue, 3),
            "setup": round(losses.setup, 3),
            "lost_steps": round(losses.lost_steps, 3),
            "recovery": round(losses.recovery, 3),
            "stall": round(losses.stall, 3),
        },
    }
