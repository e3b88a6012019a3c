"""Windows stay bounded, and fewer points keep what people look for."""

from __future__ import annotations

import math
import random
import time

import pytest

from runyard.domain.monitoring.series import Sample, Window, downsample


def _series(values: list[float]) -> list[Sample]:
    return [Sample("loss", 1000.0 + place, value, place) for place, value in enumerate(values)]


def test_few_samples_come_back_as_they_are() -> None:
    samples = _series([1.0, 2.0, 3.0])
    assert downsample(samples, 3) == samples
    assert downsample(samples, 1000) == samples
    assert downsample([], 10) == []


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 7, 10, 99, 1000])
def test_never_more_points_than_asked_and_the_ends_stay(most: int) -> None:
    chance = random.Random(most)
    samples = _series([chance.random() for _ in range(5000)])
    kept = downsample(samples, most)
    assert len(kept) <= most
    assert kept[-1] == samples[-1]
    if most > 1:
        assert kept[0] == samples[0]
    steps = [sample.step for sample in kept]
    assert steps == sorted(set(steps))


def test_no_points_asked_gives_none() -> None:
    assert downsample(_series([1.0, 2.0]), 0) == []


def test_a_single_spike_and_a_single_dip_survive() -> None:
    values = [1.0] * 100_000
    values[51_234], values[77_777] = 900.0, -900.0
    kept = [sample.value for sample in downsample(_series(values), 100)]
    assert 900.0 in kept
    assert -900.0 in kept


def test_a_single_nan_and_infinities_survive() -> None:
    values = [1.0] * 10_000
    values[1234], values[5678], values[8765] = math.nan, math.inf, -math.inf
    kept = downsample(_series(values), 50)
    assert any(math.isnan(sample.value) and sample.step == 1234 for sample in kept)
    assert any(sample.value == math.inf and sample.step == 5678 for sample in kept)
    assert any(sample.value == -math.inf and sample.step == 8765 for sample in kept)
    assert len(kept) <= 50


def test_a_series_of_nothing_but_nan_is_kept() -> None:
    kept = downsample(_series([math.nan] * 1000), 10)
    assert 2 <= len(kept) <= 10


@pytest.mark.parametrize("most", [3, 4])
def test_little_room_is_given_to_what_is_worst(most: int) -> None:
    values = [1.0] * 100
    values[40] = math.nan
    values[60] = 50.0
    kept = downsample(_series(values), most)
    assert len(kept) <= most
    assert any(math.isnan(sample.value) for sample in kept)


def test_its_time_grows_with_the_number_of_samples_only() -> None:
    samples = _series([float(place % 97) for place in range(200_000)])
    begun = time.process_time()
    downsample(samples, 10)
    downsample(samples, 50_000)
    assert time.process_time() - begun < 10  # a quadratic one would take hours


def test_a_window_holds_the_newest() -> None:
    window = Window("loss", 10)
    for sample in _series([float(place) for place in range(1000)]):
        window.append(sample)
        assert len(window) <= 10
    assert window.values() == [float(place) for place in range(990, 1000)]
    assert [sample.step for sample in window.samples()] == list(range(990, 1000))
    assert window.last() == Sample("loss", 1999.0, 999.0, 999)


def test_a_window_keeps_nan_infinity_and_missing_steps() -> None:
    window = Window("loss", 4)
    window.extend(
        [Sample("loss", 1.0, math.nan), Sample("loss", 2.0, math.inf, 5), Sample("loss", 3.0, 1.0)]
    )
    first, second, third = window.samples()
    assert math.isnan(first.value)
    assert first.step is None
    assert (second.value, second.step) == (math.inf, 5)
    assert third.step is None


def test_an_absurd_step_is_no_step() -> None:
    window = Window("loss", 4)
    window.append(Sample("loss", 1.0, 1.0, 2**70))
    window.append(Sample("loss", 1.0, 1.0, -7))
    assert [sample.step for sample in window.samples()] == [None, None]


def test_a_window_looked_at_from_a_moment_on_when_the_clock_jumped() -> None:
    window = Window("loss", 10)
    window.extend([Sample("loss", at, at) for at in (100.0, 101.0, 50.0, 51.0, 102.0)])
    assert [sample.at for sample in window.since(101.0)] == [101.0, 102.0]
    assert [sample.at for sample in window.since(0.0)] == [100.0, 101.0, 50.0, 51.0, 102.0]


def test_an_empty_window() -> None:
    window = Window("loss", 10)
    assert window.last() is None
    assert window.values() == []
    assert window.since(0) == []
