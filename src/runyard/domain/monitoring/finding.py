"""What a detector found: a code with parameters, and the figures that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.series import Sample, downsample

EXCERPT_POINTS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """`evidence` holds `series`: name -> {times, steps, values}, and what else proves it."""

    code: str
    level: AlertLevel
    params: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)


def excerpt(*series: Sequence[Sample]) -> dict[str, Any]:
    """The end of each series, short enough to be kept with an alert."""
    return {"series": {samples[-1].name: _columns(samples) for samples in series if samples}}


def plain(value: float) -> float | str:
    """NaN and infinities have no JSON: they travel as words."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return round(value, 6)


def _columns(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    shown = downsample(samples[-1000:], EXCERPT_POINTS)
    return {
        "times": [round(sample.at, 3) for sample in shown],
        "steps": [sample.step for sample in shown],
        "values": [plain(sample.value) for sample in shown],
    }
