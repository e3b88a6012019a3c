"""A disk that is being filled, and when there will be no room."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt
from runyard.domain.monitoring.robust import chunk_medians, finite, slope, span
from runyard.domain.monitoring.series import Sample

CODE = "disk_full"
AT_LEAST = 30
AT_LEAST_S = 300.0
STRETCHES = 6
SOON_S = 6 * 3600.0
FAR = 4.0  # nobody looks further ahead than this many times what was seen
ERROR_S = 3600.0
CRITICAL_S = 900.0
# Whatever the trend: with less than this the next checkpoint will not fit.
NEARLY_FULL_GB = 1.0
FULL_GB = 0.25


def find(samples: Sequence[Sample]) -> Finding | None:
    """`samples` are GB free on the disk of the data directory."""
    known = finite(samples)
    if not known:
        return None
    free = known[-1].value
    if free < NEARLY_FULL_GB:
        level = AlertLevel.CRITICAL if free < FULL_GB else AlertLevel.ERROR
        return Finding(CODE, level, _params(free, None, None), excerpt(samples))
    if len(known) < AT_LEAST or span(known) < AT_LEAST_S:
        return None
    rate = slope(known)
    if rate >= 0 or not _falling(known):
        return None
    left = free / -rate
    if left > min(SOON_S, FAR * span(known)):
        return None
    return Finding(CODE, _level(left), _params(free, rate, left), excerpt(samples))


def _falling(known: Sequence[Sample]) -> bool:
    """In every stretch but one: one large file is no trend, and old checkpoints are removed."""
    middles = chunk_medians([sample.value for sample in known], STRETCHES)
    steps = [after < before for before, after in itertools.pairwise(middles)]
    return steps.count(False) <= 1


def _level(left: float) -> AlertLevel:
    if left > ERROR_S:
        return AlertLevel.WARNING
    return AlertLevel.ERROR if left > CRITICAL_S else AlertLevel.CRITICAL


def _params(free: float, rate: float | None, left: float | None) -> dict[str, object]:
    return {
        "free_gb": round(free, 2),
        "gb_per_hour": None if rate is None else round(-rate * 3600, 2),
        "full_in_s": None if left is None else round(left),
    }
