"""The most an attempt used, and what that suggests for the next submit of the same job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_ROOM = 1.2  # the next one may need a little more
_MB_PER_GB = 1024
_MOST_CONSIDERED = 5


@dataclass(frozen=True, slots=True)
class Peak:
    attempt_id: str
    memory_mb: float | None = None
    gpu_memory_mb: float | None = None
    cpu_percent: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What an attempt used that completed its job, and what tells that another job is the same."""

    job_ref: str
    owner: str
    name: str
    command: str | tuple[str, ...]
    peak: Peak


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Memory with some room above the largest of the last runs; the time of the longest."""

    from_job: str
    memory_gb: float | None
    gpu_memory_mb: int | None
    seconds: int | None


def suggestion(earlier: Sequence[EarlierRun]) -> Suggestion | None:
    """From runs that completed, newest first."""
    runs = earlier[:_MOST_CONSIDERED]
    if not runs:
        return None
    memory = _largest([run.peak.memory_mb for run in runs])
    gpu = _largest([run.peak.gpu_memory_mb for run in runs])
    seconds = _largest([run.peak.seconds for run in runs])
    if memory is None and gpu is None and seconds is None:
        return None
    return Suggestion(
        from_job=runs[0].job_ref,
        memory_gb=None if memory is None else _up(memory * _ROOM / _MB_PER_GB),
        gpu_memory_mb=None if gpu is None else math.ceil(gpu),
        seconds=None if seconds is None else math.ceil(seconds),
    )


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value), default=None)


def _up(gigabytes: float) -> float:
    """To the next tenth."""
    return math.ceil(gigabytes * 10) / 10
