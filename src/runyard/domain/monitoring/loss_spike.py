"""A loss that jumps far above what it was a moment ago."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt, plain
from runyard.domain.monitoring.robust import finite, noise, spread
from runyard.domain.monitoring.series import Sample

CODE = "loss_spike"
BEFORE = 60  # what the newest values are compared with
AT_LEAST = 20
NEWEST = 3
# Two of the newest three this many deviations and this far above the median, or one by far more.
DEVIATIONS = 8.0
RISE = 0.5
ALONE_DEVIATIONS = 20.0
ALONE_RISE = 2.0


def find(samples: Sequence[Sample]) -> Finding | None:
    """Of a training loss, at least `AT_LEAST` values after its start."""
    known = finite(samples)
    newest, before = known[-NEWEST:], known[-NEWEST - BEFORE : -NEWEST]
    if len(before) < AT_LEAST:
        return None
    values = [sample.value for sample in before]
    middle = statistics.median(values)
    deviation = max(spread(values, middle), noise(values), abs(middle) * 0.01, 1e-9)
    high = _above(newest, middle, deviation, DEVIATIONS, RISE)
    alone = _above(newest, middle, deviation, ALONE_DEVIATIONS, ALONE_RISE)
    if len(high) < 2 and not alone:
        return None
    worst = max(newest, key=lambda sample: sample.value)
    params = {
        "metric": worst.name,
        "value": plain(worst.value),
        "usual": plain(middle),
        "deviations": round((worst.value - middle) / deviation, 1),
        "step": worst.step,
    }
    return Finding(CODE, AlertLevel.WARNING, params, excerpt(samples[-BEFORE:]))


def _above(
    newest: Sequence[Sample], middle: float, deviation: float, times: float, rise: float
) -> list[Sample]:
    limit = middle + max(times * deviation, rise * abs(middle))
    return [sample for sample in newest if sample.value > limit]
