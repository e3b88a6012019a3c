"""Since when a loss has been no number, however long ago that was (R18, R19)."""

from __future__ import annotations

import math

import pytest

from runyard.domain.failures.categories import Category
from runyard.domain.monitoring.series import Sample
from runyard.engine.recover.diagnosing import Diagnoser
from runyard.executors.base import End

FAILED = End(1, None, "exited", "supervisor", 9e9, 0.0)


def bad_step(engine, values, *, name="loss", kept=True):
    """What the diagnosis says of an attempt that told these losses, from step 0 on."""
    ref = engine.running()
    [attempt] = engine.attempts(ref)
    samples = [Sample(name, 1000.0 + step, value, step) for step, value in enumerate(values)]
    if kept:
        engine.store.write(
            lambda tx: tx.insert_points(attempt.job_id, attempt.number, samples), durable=False
        )
    engine.parts.board.restore(attempt.job_id, attempt.number, samples)
    found = Diagnoser(engine.parts).of_ends([(attempt.attempt_id, FAILED)])[attempt.attempt_id]
    assert found.category is Category.NAN
    return found.facts["bad_step"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_that_went_on_for_thousands_of_steps(engine, bad):
    values = [1.0 / (step + 1) for step in range(300)] + [bad] * 4700
    assert bad_step(engine, values) == 300


def test_one_that_had_recovered_before(engine):
    """The last finite value in the midst of others, far from the beginning and the end."""
    values = [math.nan if step % 3 else 1.0 + step % 7 for step in range(21_340)]
    assert bad_step(engine, [*values, *[math.nan] * 8000]) == 21_340


def test_one_that_never_was_a_number(engine):
    assert bad_step(engine, [math.nan] * 3000) == 0


def test_another_name_of_the_loss(engine):
    values = [1.0] * 1200 + [math.nan] * 1500
    assert bad_step(engine, values, name="train/loss") == 1200


def test_what_is_not_in_the_store_yet(engine):
    values = [1.0] * 100 + [math.nan] * 50
    assert bad_step(engine, values, kept=False) == 100
