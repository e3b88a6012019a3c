"""Stalls are judged by a job's own steps, whatever else it does meanwhile (R15)."""

from __future__ import annotations

import random

import pytest
from training_series import SEEDS

from runyard.domain.monitoring import stalled_training
from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.pace import Pace
from runyard.domain.monitoring.stalled_training import Signs

FLOOR = 600.0
TICK = 10.0


def trained(steps: int, every: float = 10.0) -> tuple[Pace, float]:
    pace, now = Pace(0.0), 0.0
    for step in range(steps):
        now += every
        pace.note(step, "training", now)
    return pace, now


def test_steps_that_stop_are_a_stall_after_the_floor():
    pace, now = trained(50)
    assert stalled_training.find(pace, now + FLOOR, FLOOR, Signs()) is None
    found = stalled_training.find(pace, now + FLOOR + 1, FLOOR, Signs())
    assert found is not None
    assert found.level is AlertLevel.ERROR
    assert (found.params["basis"], found.params["step"]) == ("steps", 49)


def test_slow_jobs_get_a_budget_of_their_own():
    pace, now = trained(20, every=400)
    assert stalled_training.budget(pace, FLOOR) == 8 * 400
    assert stalled_training.find(pace, now + 3100, FLOOR, Signs()) is None
    assert stalled_training.find(pace, now + 3300, FLOOR, Signs()) is not None


def test_neither_a_growing_log_nor_load_is_progress():
    """A heartbeat thread prints, the CPU and the GPU spin: it is a stall all the same."""
    pace, now = trained(50)
    signs = Signs(quiet_s=1.0, cpu_percent=400.0, gpu_util=100.0)
    found = stalled_training.find(pace, now + 2 * FLOOR, FLOOR, signs)
    assert found is not None
    assert found.evidence["gpu_util"] == 100.0


@pytest.mark.parametrize("phase", ["loading", "evaluating", "saving"])
def test_phases_without_steps_have_more_time(phase):
    pace, now = trained(50)
    pace.note(49, phase, now + TICK)
    assert stalled_training.find(pace, now + 2 * FLOOR, FLOOR, Signs()) is None
    assert stalled_training.find(pace, now + 3 * FLOOR + 1, FLOOR, Signs()) is not None


def test_the_first_steps_and_the_end_have_more_time():
    pace, now = trained(2)
    assert stalled_training.budget(pace, FLOOR) == 3 * FLOOR
    pace, now = trained(50)
    assert stalled_training.find(pace, now + 2 * FLOOR, FLOOR, Signs(done=True)) is None
    hung = stalled_training.find(pace, now + 3 * FLOOR + 1, FLOOR, Signs(done=True))
    assert hung is not None, "leaving can hang as well"


def test_an_evaluation_does_not_widen_the_budget_of_steps_for_ever():
    pace, now = trained(30)
    pace.note(29, "evaluating", now + TICK)
    pace.note(30, "training", now + 1000)
    assert list(pace.pauses) == [1000.0]
    assert stalled_training.budget(pace, FLOOR) == 3000
    assert max(pace.gaps) == 10


def test_a_pause_that_nobody_named_is_learned():
    pace, now = trained(30)
    pace.note(30, "training", now + 500)
    assert stalled_training.budget(pace, FLOOR) == 1500


def test_a_step_back_is_progress():
    pace, now = trained(50)
    assert pace.note(0, "training", now + FLOOR) is None, "a new epoch has no rate"
    assert stalled_training.find(pace, now + FLOOR + 10, FLOOR, Signs()) is None


def test_programs_that_tell_no_step_must_be_silent_and_idle_for_long():
    pace = Pace(0.0)
    idle = Signs(quiet_s=4000.0, cpu_percent=0.1)
    found = stalled_training.find(pace, 4000.0, FLOOR, idle)
    assert found is not None
    assert (found.level, found.params["basis"]) == (AlertLevel.WARNING, "silence")
    assert stalled_training.find(pace, 3000.0, FLOOR, idle) is None, "not looked at for so long"
    for signs in (
        Signs(quiet_s=100.0, cpu_percent=0.1),
        Signs(quiet_s=4000.0, cpu_percent=90.0),
        Signs(quiet_s=4000.0, cpu_percent=0.1, gpu_util=60.0),
        Signs(quiet_s=4000.0),
        Signs(cpu_percent=0.1),
    ):
        assert stalled_training.find(pace, 4000.0, FLOOR, signs) is None


def healthy(seed: int):
    """(now, step, phase) as seen at each look: compiling first, then steps of one length with
    noise, evaluations and saves that the log names or does not."""
    chance = random.Random(seed)
    length = chance.choice([0.05, 1.0, 8.0, 45.0, 240.0])
    named = chance.random() < 0.5
    # A first pause above the floor that nobody names cannot be told from a stall.
    pause = chance.uniform(5, 1500 if named else 500)
    every = chance.choice([40, 200])
    now, step = chance.uniform(10, 1500), 0
    while step < 400:
        step += 1
        now += length * chance.lognormvariate(0, 0.3)
        yield now, step, "training"
        if step % every == 0:
            for _ in range(5):
                now += pause / 5
                yield now, step, "evaluating" if named else "training"


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_trainings_are_not_called_stalled(seed):
    pace, seen = Pace(0.0), list(healthy(seed))
    place = 0
    now = 0.0
    while place < len(seen):
        now += TICK
        while place < len(seen) and seen[place][0] <= now:
            _, step, phase = seen[place]
            place += 1
            pace.note(step, phase, now)
        signs = Signs(quiet_s=0.0, cpu_percent=50.0)
        assert stalled_training.find(pace, now, FLOOR, signs) is None, (now, place)
