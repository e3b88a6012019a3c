"""Many points of a series in a row, summed up: lowest, highest and first NaN with their places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from runyard.domain.monitoring.series import Sample

LEVELS = (100, 10_000)  # points per rollup
NO_STEP = -1


@dataclass(frozen=True, slots=True)
class Rollup:
    """`low` and `high` leave NaN out, but not infinities; None when there is nothing else."""

    level: int
    bucket: int
    points: int
    first_step: int
    last_step: int
    first_at: float
    last_at: float
    low: float | None
    low_step: int
    low_at: float
    high: float | None
    high_step: int
    high_at: float
    nan_step: int | None
    nan_at: float | None


def roll(last: Rollup | None, samples: Sequence[Sample], level: int) -> list[Rollup]:
    """The rollups that change with further samples: the last one, unless it is full, and new ones
    after it."""
    changed: list[Rollup] = []
    bucket, start = 0, 0
    if last is not None:
        bucket = last.bucket + 1
        room = level - last.points
        if room > 0:
            start = min(room, len(samples))
            changed.append(_joined(last, _of(samples[:start], level, last.bucket)))
    while start < len(samples):
        changed.append(_of(samples[start : start + level], level, bucket))
        start += level
        bucket += 1
    return changed


def samples_of(name: str, rollups: Iterable[Rollup]) -> list[Sample]:
    """What stands out of each: its lowest, its highest, its first NaN; in order."""
    found: dict[tuple[int, float, bool], float] = {}
    for one in rollups:
        if one.low is not None:
            found[one.low_step, one.low_at, False] = one.low
        if one.high is not None:
            found[one.high_step, one.high_at, False] = one.high
        if one.nan_step is not None and one.nan_at is not None:
            found[one.nan_step, one.nan_at, True] = math.nan
    return [
        Sample(name, at, value, None if step == NO_STEP else step)
        for (step, at, _), value in sorted(found.items(), key=lambda item: item[0])
    ]


def _of(samples: Sequence[Sample], level: int, bucket: int) -> Rollup:
    low = high = nan = None
    for sample in samples:
        value = sample.value
        if value != value:
            nan = nan or sample
            continue
        if low is None or value < low.value:
            low = sample
        if high is None or value > high.value:
            high = sample
    steps = [step_of(sample) for sample in samples]
    times = [sample.at for sample in samples]
    lowest, highest = low or samples[0], high or samples[0]
    return Rollup(
        level=level,
        bucket=bucket,
        points=len(samples),
        first_step=min(steps),
        last_step=max(steps),
        first_at=min(times),
        last_at=max(times),
        low=low.value if low else None,
        low_step=step_of(lowest),
        low_at=lowest.at,
        high=high.value if high else None,
        high_step=step_of(highest),
        high_at=highest.at,
        nan_step=step_of(nan) if nan else None,
        nan_at=nan.at if nan else None,
    )


def step_of(sample: Sample) -> int:
    step = sample.step
    return step if step is not None and 0 <= step < 2**63 else NO_STEP


def _joined(one: Rollup, more: Rollup) -> Rollup:
    joined = replace(
        one,
        points=one.points + more.points,
        first_step=min(one.first_step, more.first_step),
        last_step=max(one.last_step, more.last_step),
        first_at=min(one.first_at, more.first_at),
        last_at=max(one.last_at, more.last_at),
    )
    if more.low is not None and (one.low is None or more.low < one.low):
        joined = replace(joined, low=more.low, low_step=more.low_step, low_at=more.low_at)
    if more.high is not None and (one.high is None or more.high > one.high):
        joined = replace(joined, high=more.high, high_step=more.high_step, high_at=more.high_at)
    if one.nan_step is None:
        joined = replace(joined, nan_step=more.nan_step, nan_at=more.nan_at)
    return joined
