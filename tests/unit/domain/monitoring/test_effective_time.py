"""The share of a job's time that went into steps that count."""

from __future__ import annotations

import pytest

from runyard.domain.monitoring.effective_time import AttemptTimes, effective_time


def _steps(first_at: float, first: int, count: int, pace: float = 1.0) -> list[tuple[float, int]]:
    return [(first_at + pace * n, first + n) for n in range(count)]


def _adds_up(found) -> None:
    losses = found.losses
    lost = losses.queue + losses.setup + losses.lost_steps + losses.recovery + losses.stall
    assert lost + found.productive_s == pytest.approx(found.wall_s)


def test_a_job_that_ran_through() -> None:
    attempt = AttemptTimes(110.0, 220.0, completed=True, steps=_steps(120.0, 0, 100))
    found = effective_time(100.0, [attempt], now=999.0)
    assert (found.losses.queue, found.losses.setup) == (10.0, 10.0)
    assert found.wall_s == 120.0
    assert found.productive_s == 100.0
    assert found.ratio == pytest.approx(100 / 120)
    _adds_up(found)


def test_a_job_that_waits() -> None:
    found = effective_time(100.0, [], now=150.0)
    assert (found.ratio, found.losses.queue) == (None, 50.0)
    _adds_up(found)


def test_a_job_that_tells_no_steps_has_no_ratio() -> None:
    found = effective_time(100.0, [AttemptTimes(110.0, 150.0, completed=True)], now=999.0)
    assert found.ratio is None
    assert found.losses.setup == 40.0
    _adds_up(found)


def test_steps_that_were_done_again_are_lost() -> None:
    """Died at step 99, resumed at step 60: forty steps for nothing, and the way back."""
    first = AttemptTimes(100.0, 200.0, steps=_steps(100.0, 0, 100))
    second = AttemptTimes(210.0, 300.0, completed=True, steps=_steps(220.0, 60, 80))
    found = effective_time(100.0, [first, second], now=999.0)
    assert found.losses.lost_steps == pytest.approx(41.0)
    assert found.losses.recovery == 20.0
    assert found.wall_s == 200.0
    _adds_up(found)


def test_what_nobody_wanted_to_run_does_not_count() -> None:
    first = AttemptTimes(100.0, 200.0, steps=_steps(100.0, 0, 100))
    second = AttemptTimes(1000.0, 1100.0, completed=True, steps=_steps(1000.0, 100, 100))
    found = effective_time(100.0, [first, second], now=9999.0, set_aside=[(200.0, 995.0)])
    assert found.wall_s == 205.0
    assert found.losses.recovery == pytest.approx(5.0)
    _adds_up(found)


def test_a_stall_is_what_goes_beyond_the_usual_pace() -> None:
    steps = [*_steps(100.0, 0, 50), *_steps(250.0, 50, 50)]
    found = effective_time(100.0, [AttemptTimes(100.0, 300.0, True, steps)], now=999.0)
    assert found.losses.stall == pytest.approx(100.0)
    _adds_up(found)


def test_one_that_hangs_now_is_stalled() -> None:
    steps = _steps(100.0, 0, 50)
    found = effective_time(100.0, [AttemptTimes(100.0, None, steps=steps)], now=649.0)
    assert found.losses.stall == pytest.approx(499.0)
    assert found.ratio is not None
    assert found.ratio < 0.1
    _adds_up(found)


def test_clocks_that_were_set_back_give_nothing_absurd() -> None:
    steps = [(100.0, 0), (50.0, 1), (101.0, 2), (102.0, 3), (60.0, 4)]
    found = effective_time(120.0, [AttemptTimes(100.0, 90.0, True, steps)], now=80.0)
    assert found.wall_s == 0.0
    assert found.productive_s == 0.0
    assert (
        min(found.losses.queue, found.losses.setup, found.losses.recovery, found.losses.stall) >= 0
    )
