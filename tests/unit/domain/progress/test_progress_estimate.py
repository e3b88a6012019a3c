"""How long it will take: steady, noisy, resumed, paused, and with clocks that jump."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runyard.domain.progress.estimate import eta


def run(seconds_per_step, steps, *, start=0.0, first=0):
    at, samples = start, []
    for step in range(first, steps):
        samples.append((at, float(step)))
        at += seconds_per_step(step) if callable(seconds_per_step) else seconds_per_step
    return samples


def test_a_steady_run():
    """R17"""
    samples = run(2.0, 34)
    found = eta(samples, samples[-1][0], end=100.0, basis="steps")
    assert found is not None
    assert found.seconds == pytest.approx(67 * 2.0)
    assert found.low < found.seconds < found.high
    assert found.at == samples[-1][0] + found.seconds
    assert found.basis == "steps"


@pytest.mark.parametrize("seed", range(20))
def test_within_a_fifth_after_a_third(seed):
    """R17: noisy steps, and a validation after every 20."""
    chance = random.Random(seed)

    def spent(step):
        return chance.lognormvariate(0, 0.5) + (8.0 if step % 20 == 19 else 0.0)

    samples = run(spent, 301)
    truth = samples[-1][0] - samples[100][0]
    found = eta(samples[:101], samples[100][0], end=300.0)
    assert found is not None
    assert found.seconds == pytest.approx(truth, rel=0.2)


def test_a_resumed_run_is_judged_by_itself():
    samples = run(1.0, 5050, first=5000)
    found = eta(samples, samples[-1][0], end=6000.0)
    assert found is not None
    assert found.seconds == pytest.approx(951)


def test_one_long_pause_is_set_aside():
    samples = run(lambda step: 3600.0 if step == 20 else 1.0, 50)
    found = eta(samples, samples[-1][0], end=100.0)
    assert found is not None
    assert found.seconds == pytest.approx(51)


def test_while_it_pauses_the_range_grows_and_the_time_does_not_shrink():
    samples = run(1.0, 50)
    at = samples[-1][0]
    soon, late = eta(samples, at + 1, end=100.0), eta(samples, at + 600, end=100.0)
    assert soon is not None
    assert late is not None
    assert soon.seconds == pytest.approx(50)
    assert late.seconds == pytest.approx(51)
    assert late.high > 600


def test_a_clock_that_jumps_back():
    samples = run(1.0, 50, start=10_000.0) + [
        (at, step + 50) for at, step in run(2.0, 20, start=500.0)
    ]
    found = eta(samples, samples[-1][0], end=100.0)
    assert found is not None
    assert found.seconds == pytest.approx(31 * 2.0)


def test_now_before_the_last_sample():
    samples = run(1.0, 50, start=1000.0)
    found = eta(samples, 5.0, end=100.0)
    assert found is not None
    assert found.seconds == pytest.approx(51)


def test_a_training_that_began_again():
    samples = run(1.0, 90) + run(3.0, 10, start=100.0)
    found = eta(samples, samples[-1][0], end=100.0)
    assert found is not None
    assert found.seconds == pytest.approx(91 * 3.0)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_too_little_is_known(count):
    assert eta(run(1.0, count), 10.0, end=100.0) is None


def test_nothing_moves():
    assert eta([(float(at), 0.5) for at in range(100)], 100.0) is None


def test_it_is_over():
    samples = [(float(at), at / 10) for at in range(11)]
    found = eta(samples, 10.0)
    assert found is not None
    assert (found.seconds, found.low, found.high) == (0, 0, 0)


def test_ages_are_no_forecast():
    assert eta([(at * 1e6, at * 1e-9) for at in range(10)], 1e7) is None


def test_it_gets_slower_and_the_newest_counts():
    samples = run(0.01, 2000) + [(2000 * 0.01 + n, 2000.0 + n) for n in range(1, 600)]
    found = eta(samples, samples[-1][0], end=3000.0)
    assert found is not None
    assert found.seconds == pytest.approx(401, rel=0.2)


@given(
    some.lists(some.tuples(some.floats(allow_nan=True), some.floats(allow_nan=True)), max_size=40),
    some.floats(allow_nan=False, allow_infinity=False),
)
def test_whatever_comes_it_answers_or_is_silent(samples, now):
    found = eta(samples, now)
    if found is not None:
        assert math.isfinite(found.seconds)
        assert 0 <= found.low <= found.seconds <= found.high
