"""kill -9 of anything, at any time, in any order: nothing is lost, invented, doubled or left."""

import os
import random

import pytest
from storm import Storm, Strangers

from yards import RunningYard, Truth


@pytest.fixture
def strangers():
    strangers = Strangers()
    yield strangers
    strangers.close()


def weather(tmp_path, strangers, seconds, seed):
    yard = RunningYard(tmp_path / "yard", max_concurrent=8).start()
    truth = Truth(tmp_path / "truth")
    storm = Storm(yard, tmp_path, random.Random(seed), truth)
    try:
        first = yard.submit(["sleep", "3600"], grace_s=0.5)
        yard.wait(first, "running")
        strangers.imitate(first, yard.data)
        storm.codes[first] = -1
        yard.api("POST", f"/jobs/{first}/cancel")
        storm.cancelled.add(first)
        storm.rage(seconds)
        for ref in list(storm.codes)[:3]:
            strangers.imitate(ref, yard.data)
        storm.assert_all_true()
        strangers.assert_unharmed()
        print(f"seed {seed}: {storm.summary()}")
        assert len(storm.codes) > seconds, "hardly anything was submitted"
        assert sum(storm.killed.values()) > seconds / 5, storm.killed
    except BaseException as error:
        error.add_note(f"seed {seed}, killed {dict(storm.killed)}, {len(storm.codes)} jobs")
        raise
    finally:
        yard.stop()
        truth.close()


def chosen_seed() -> int:
    """The same seed makes the same choices; what the machine makes of them is its own."""
    return int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))


def test_chaos_for_a_while(tmp_path, strangers):
    """R41, R42, R43, R56"""
    weather(tmp_path, strangers, 15, chosen_seed())


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_chaos_10_minutes_random_kill9(tmp_path, strangers):
    """R41, R42, R43, R56"""
    weather(tmp_path, strangers, float(os.environ.get("CHAOS_SECONDS") or 600), chosen_seed())
