"""Points in a row, summed up: nothing that stands out is lost."""

from __future__ import annotations

import math
import random

from runyard.domain.monitoring.rollup import NO_STEP, Rollup, roll, samples_of
from runyard.domain.monitoring.series import Sample


def _samples(values: list[float], first: int = 0) -> list[Sample]:
    return [Sample("loss", 100.0 + first + n, v, first + n) for n, v in enumerate(values)]


def _roll_in_parts(samples: list[Sample], sizes: list[int], level: int) -> list[Rollup]:
    kept: dict[int, Rollup] = {}
    start = 0
    for size in sizes:
        last = kept[max(kept)] if kept else None
        for rollup in roll(last, samples[start : start + size], level):
            kept[rollup.bucket] = rollup
        start += size
    return [kept[bucket] for bucket in sorted(kept)]


def test_however_the_points_come_the_rollups_are_the_same() -> None:
    chance = random.Random(3)
    samples = _samples([chance.gauss(0, 1) for _ in range(1000)])
    whole = _roll_in_parts(samples, [1000], 100)
    one_by_one = _roll_in_parts(samples, [1] * 1000, 100)
    odd = _roll_in_parts(samples, [333, 1, 250, 416], 100)
    assert [rollup.points for rollup in whole] == [100] * 10
    for others in (one_by_one, odd):
        assert len(others) == 10
        for one, other in zip(whole, others, strict=True):
            assert (one.low, one.low_step, one.high, one.high_step) == (
                other.low,
                other.low_step,
                other.high,
                other.high_step,
            )
            assert one.points == other.points
            assert (one.first_step, one.last_step) == (other.first_step, other.last_step)


def test_lowest_highest_and_nan_with_their_places() -> None:
    values = [1.0] * 10
    values[2], values[5], values[7] = 9.0, math.nan, -9.0
    [rollup] = roll(None, _samples(values), 100)
    assert (rollup.high, rollup.high_step, rollup.high_at) == (9.0, 2, 102.0)
    assert (rollup.low, rollup.low_step) == (-9.0, 7)
    assert (rollup.nan_step, rollup.nan_at) == (5, 105.0)
    found = samples_of("loss", [rollup])
    assert [sample.step for sample in found] == [2, 5, 7]
    assert math.isnan(found[1].value)


def test_infinities_are_extremes() -> None:
    [rollup] = roll(None, _samples([1.0, math.inf, -math.inf, 2.0]), 100)
    assert (rollup.low, rollup.high) == (-math.inf, math.inf)


def test_nothing_but_nan() -> None:
    [rollup] = roll(None, _samples([math.nan, math.nan]), 100)
    assert (rollup.low, rollup.high) == (None, None)
    [only] = samples_of("loss", [rollup])
    assert math.isnan(only.value)
    [joined] = roll(rollup, _samples([3.0], first=2), 100)
    assert (joined.low, joined.high, joined.points) == (3.0, 3.0, 3)


def test_samples_without_steps_are_placed_by_time() -> None:
    [rollup] = roll(None, [Sample("rss", 5.0, 1.0), Sample("rss", 6.0, 2.0)], 100)
    assert (rollup.first_step, rollup.last_step) == (NO_STEP, NO_STEP)
    assert [(s.at, s.step) for s in samples_of("rss", [rollup])] == [(5.0, None), (6.0, None)]


def test_a_single_point_is_told_once() -> None:
    [rollup] = roll(None, _samples([4.0]), 100)
    assert samples_of("loss", [rollup]) == _samples([4.0])
