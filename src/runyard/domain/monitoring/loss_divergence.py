"""A loss that keeps rising away from the best it had reached."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt, plain
from runyard.domain.monitoring.robust import chunk_medians, finite, noise
from runyard.domain.monitoring.series import Sample

CODE = "loss_divergence"
AT_LEAST = 48
STRETCHES = 16
RISING = 4  # stretches at the end that must rise, one after the other
DEVIATIONS = 6.0
RISE = 0.3  # of the best; a restart of the learning rate costs less, and falls again at once


def find(samples: Sequence[Sample]) -> Finding | None:
    """Of a training loss. Medians of stretches are compared, so no single value matters."""
    known = finite(samples)
    if len(known) < AT_LEAST:
        return None
    values = [sample.value for sample in known]
    medians = chunk_medians(values, STRETCHES)
    best, last = min(medians), medians[-1]
    enough = max(DEVIATIONS * noise(values), RISE * abs(best), 1e-9)
    if last - best < enough or not _rising(medians[-RISING:]):
        return None
    since = known[len(known) * medians.index(best) // STRETCHES]
    params = {
        "metric": known[-1].name,
        "value": plain(last),
        "best": plain(best),
        "best_step": since.step,
        "step": known[-1].step,
    }
    return Finding(CODE, AlertLevel.ERROR, params, excerpt(samples))


def _rising(medians: Sequence[float]) -> bool:
    return all(after > before for before, after in itertools.pairwise(medians))
