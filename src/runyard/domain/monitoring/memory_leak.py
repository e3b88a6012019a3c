"""Memory that only grows, of the host or of a GPU, and when it will be used up."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt
from runyard.domain.monitoring.robust import chunks, finite, noise, slope, span
from runyard.domain.monitoring.series import Sample

CODE = "memory_leak"
WARM_UP_S = 300.0  # loading and the first steps take memory, which is no leak
AT_LEAST = 40
AT_LEAST_S = 1200.0
URGENT_S = 400.0  # enough where less than that is left
STRETCHES = 8
GROWN_MB = 100.0
GROWN = 0.05  # of what it had, where the end is near
GROWN_FAR = 0.15  # where there is time: caches and larger batches look like leaks for a while
DEVIATIONS = 6.0
STEADY = 0.75  # the last steps are so large at least, compared with the first
EVEN = 0.6  # the usual step, compared with the mean
UNEVEN = 3.0  # the largest, compared with the usual
SOON_S = 24 * 3600.0
ERROR_S = 3600.0
CRITICAL_S = 600.0


def find(
    samples: Sequence[Sample], *, started_at: float, limit_mb: float | None, kind: str
) -> Finding | None:
    """`samples` are MB of one attempt; `kind` is host or gpu; `limit_mb` is where it ends."""
    known = [sample for sample in finite(samples) if sample.at >= started_at + WARM_UP_S]
    if len(known) < AT_LEAST or span(known) < URGENT_S:
        return None
    values = [sample.value for sample in known]
    lows = [min(chunk) for chunk in chunks(values, STRETCHES)]
    grown = lows[-1] - lows[0]
    if grown < max(GROWN_MB, GROWN * lows[0], DEVIATIONS * noise(values)) or not _steady(lows):
        return None
    late = slope(known[-(len(known) // 3) :])
    if late < EVEN * grown / span(known):
        return None
    left = None if limit_mb is None else max(0.0, limit_mb - known[-1].value) / late
    if _too_early(left, span(known)) or (left is not None and left > SOON_S):
        return None
    if _level(left) is AlertLevel.WARNING and grown < GROWN_FAR * lows[0]:
        return None
    params = {
        "kind": kind,
        "used_mb": round(known[-1].value),
        "grown_mb": round(grown),
        "mb_per_hour": round(late * 3600, 1),
        "limit_mb": None if limit_mb is None else round(limit_mb),
        "exhausted_in_s": None if left is None else round(left),
    }
    return Finding(CODE, _level(left), params, excerpt(samples))


def _too_early(left: float | None, looked_s: float) -> bool:
    urgent = left is not None and left < looked_s
    return looked_s < AT_LEAST_S and not urgent


def _steady(lows: Sequence[float]) -> bool:
    """Growing in every stretch, about as much at the end as in the beginning. A larger batch is
    one step, a cache fills ever slower, and what is freed again raises no lowest value."""
    steps = [after - before for before, after in pairwise(lows)]
    usual = statistics.median(steps)
    even = usual >= EVEN * statistics.fmean(steps) and max(steps) <= UNEVEN * usual
    return min(steps) > 0 and even and sum(steps[-3:]) >= STEADY * sum(steps[:3])


def _level(left: float | None) -> AlertLevel:
    if left is None or left > ERROR_S:
        return AlertLevel.WARNING
    return AlertLevel.ERROR if left > CRITICAL_S else AlertLevel.CRITICAL
