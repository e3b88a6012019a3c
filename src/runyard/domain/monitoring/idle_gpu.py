"""A running job that holds a GPU and does not use it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt
from runyard.domain.monitoring.robust import finite, span
from runyard.domain.monitoring.series import Sample

CODE = "idle_gpu"
IDLE_PERCENT = 5.0
FOR_S = 600.0
AT_LEAST = 10
BUSY_MOMENTS = 0.05  # so many of the samples may be above: a driver's own work


def find(samples: Sequence[Sample], *, now: float, started_at: float) -> Finding | None:
    """`samples` are percent over the job's GPUs. The first minutes of an attempt load a model."""
    if now - started_at < 2 * FOR_S:
        return None
    recent = [sample for sample in finite(samples) if sample.at >= now - FOR_S]
    if len(recent) < AT_LEAST or span(recent) < 0.8 * FOR_S:
        return None
    busy = sum(sample.value >= IDLE_PERCENT for sample in recent)
    if busy > BUSY_MOMENTS * len(recent):
        return None
    mean = statistics.fmean(sample.value for sample in recent)
    params = {"seconds": round(FOR_S), "util_percent": round(mean, 1)}
    return Finding(CODE, AlertLevel.WARNING, params, excerpt(samples))
