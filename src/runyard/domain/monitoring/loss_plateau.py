"""A loss that has stopped falling long before the training is over."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt, plain
from runyard.domain.monitoring.robust import finite, noise, slope, span
from runyard.domain.monitoring.series import Sample

CODE = "loss_plateau"
AT_LEAST = 120
AT_LEAST_S = 1800.0
NEARLY_DONE = 0.75  # what no longer falls then has simply converged
IMPROVED = 0.002  # of its value: less than this over the whole window is nothing
ERRORS = 2.0  # standard errors of a median; a gain above that is real


def find(samples: Sequence[Sample], fraction: float | None = None) -> Finding | None:
    """`samples` are of one pace, the newest of at least half an hour; `fraction` is how far the
    training is, if it tells."""
    known = finite(samples)
    if fraction is not None and fraction >= NEARLY_DONE:
        return None
    if len(known) < AT_LEAST or span(known) < AT_LEAST_S:
        return None
    values = [sample.value for sample in known]
    third = len(values) // 3
    early, late = statistics.median(values[:third]), statistics.median(values[-third:])
    error = 1.2533 * noise(values) * math.sqrt(2 / third)
    if early - late > max(ERRORS * error, IMPROVED * abs(early)):
        return None
    if _falls(known, error) or late - early > max(4 * error, 0.05 * abs(early)):
        return None  # rising is the business of divergence
    params = {
        "metric": known[-1].name,
        "value": plain(late),
        "seconds": round(span(known)),
        "step": known[-1].step,
        "since_step": known[0].step,
    }
    return Finding(CODE, AlertLevel.WARNING, params, excerpt(samples))


def _falls(known: Sequence[Sample], error: float) -> bool:
    return -slope(known) * span(known) > max(3 * error, IMPROVED * abs(known[-1].value))
