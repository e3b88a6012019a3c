"""Statistics that a few wild values do not move. Everything here is for at most 1,000 values."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from runyard.domain.monitoring.series import Sample

NORMAL = 1.4826  # a median deviation times this is a standard deviation, where noise is normal
MOST_FOR_SLOPE = 60  # pairs grow with the square


def finite(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if math.isfinite(sample.value)]


def spread(values: Sequence[float], middle: float | None = None) -> float:
    """The standard deviation as the median deviation tells it."""
    if not values:
        return 0.0
    centre = statistics.median(values) if middle is None else middle
    return NORMAL * statistics.median(abs(value - centre) for value in values)


def noise(values: Sequence[float]) -> float:
    """The spread around whatever the values follow: neighbours differ by noise only."""
    if len(values) < 3:
        return 0.0
    changes = [after - before for before, after in itertools.pairwise(values)]
    return spread(changes) / math.sqrt(2)


def chunks(values: Sequence[float], count: int) -> list[Sequence[float]]:
    """`count` stretches of about equal length; fewer where there are fewer values."""
    count = min(count, len(values))
    ends = [len(values) * number // count for number in range(count + 1)] if count else []
    return [values[first:end] for first, end in itertools.pairwise(ends)]


def chunk_medians(values: Sequence[float], count: int) -> list[float]:
    return [statistics.median(chunk) for chunk in chunks(values, count)]


def slope(samples: Sequence[Sample]) -> float:
    """Per second, as the median over pairs of samples (Theil and Sen): a third of the values may
    be anything."""
    points = _thinned(samples)
    slopes = [
        (later.value - earlier.value) / (later.at - earlier.at)
        for place, earlier in enumerate(points)
        for later in points[place + 1 :]
        if later.at > earlier.at
    ]
    return statistics.median(slopes) if slopes else 0.0


def span(samples: Sequence[Sample]) -> float:
    """Seconds from the first to the last; negative if the clock was set back between."""
    return samples[-1].at - samples[0].at if samples else 0.0


def _thinned(samples: Sequence[Sample]) -> list[Sample]:
    """Medians of stretches, so that short saw-teeth do not count."""
    if len(samples) <= MOST_FOR_SLOPE:
        return list(samples)
    count = len(samples)
    ends = [count * number // MOST_FOR_SLOPE for number in range(MOST_FOR_SLOPE + 1)]
    return [_middle(samples[first:end]) for first, end in itertools.pairwise(ends)]


def _middle(samples: Sequence[Sample]) -> Sample:
    value = statistics.median(sample.value for sample in samples)
    return Sample(samples[0].name, samples[len(samples) // 2].at, value)
