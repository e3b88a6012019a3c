"""kill -9 of anything, at any time, in any order: nothing is lost, invented, doubled or left."""

import os
import random

import pytest
from kill_points import STAGES, KillPoints
from storm import Storm, Strangers

from yards import POOL, RunningYard, Truth

pytestmark = pytest.mark.timeout(400)
# As many as jobs at once, so that each is given many times, and one that is lost is missed.
PORTS = {"RUNYARD_PORT_RANGE": f"{POOL[0]}-{POOL[7]}"}


@pytest.fixture
def strangers():
    strangers = Strangers()
    yield strangers
    strangers.close()


def weather(tmp_path, strangers, seconds, seed):
    yard = RunningYard(tmp_path / "yard", max_concurrent=8, env=PORTS).start()
    truth = Truth(tmp_path / "truth")
    storm = Storm(yard, tmp_path, random.Random(seed), truth, strangers=strangers)
    try:
        first = yard.submit(["sleep", "3600"], grace_s=0.5)
        yard.wait(first, "running")
        strangers.imitate(first, yard.data)
        storm.codes[first] = -1
        yard.api("POST", f"/jobs/{first}/cancel")
        storm.cancelled.add(first)
        storm.rage(seconds)
        storm.assert_all_true()
        strangers.assert_unharmed()
        print(f"seed {seed}: {storm.summary()}")
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


def test_kills_in_every_stage_of_a_job(tmp_path, strangers):
    """R41, R42, R43, R56; benchmarks/random_kills.py does it a thousand times."""
    seed = chosen_seed()
    yard = RunningYard(tmp_path / "yard", max_concurrent=8, env=PORTS).start()
    truth = Truth(tmp_path / "truth")
    points = KillPoints(yard, tmp_path, random.Random(seed), truth, strangers=strangers)
    try:
        points.strike(2 * len(STAGES))
        verdict = points.verdict()
        told = f"seed {seed}, killed {dict(points.killed)}: {verdict}"
        assert verdict.jobs, told
        assert verdict.lost + verdict.run_twice == [], told
        assert not verdict.outlived, told
        assert verdict.untrue == [], told
        assert verdict.codes_kept == verdict.codes_expected, told
        assert strangers.harmed() == 0
    finally:
        yard.stop()
        truth.close()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_chaos_10_minutes_random_kill9(tmp_path, strangers):
    """R41, R42, R43, R56"""
    weather(tmp_path, strangers, float(os.environ.get("CHAOS_SECONDS") or 600), chosen_seed())
