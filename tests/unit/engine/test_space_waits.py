"""A job whose disk was full is tried again when there is room, and not before."""

import pytest

from engine_yard import ANN, EngineYard
from failing_attempts import fail, next_attempt
from runyard.domain.recovery import space
from runyard.domain.states import JobStatus
from runyard.engine.recover import disk_room

FULL = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 90, in save\n'
    "OSError: [Errno 28] No space left on device: '/data/checkpoint-100/model.pt'\n"
)
GIB = 1 << 30


def look(engine):
    engine.clock.ahead += 120  # longer than any delay and than a look holds it back
    engine.yard.runtime.space_waits.look()
    engine.yard.runtime.wake()


def shown(engine, ref, **params):
    seen, told = engine.reason(ref)
    return seen == "waiting_for_space" and all(told[name] == params[name] for name in params)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    engine = EngineYard(tmp_path, max_concurrent=4)
    engine.free = 0
    monkeypatch.setattr(disk_room, "free_bytes", lambda _path: engine.free)
    engine.restart()
    yield engine
    engine.close()


def test_it_waits_for_room_however_long_that_takes(engine):
    """R20: the delay is long over, and it says what is free and what is wanted."""
    ref = engine.running(max_retries=3)
    fail(engine, ref, FULL)
    engine.wait(ref, "retrying")
    wanted = engine.attempts(ref)[0].plan["wait_for"]["bytes"]
    assert wanted > 0
    for free in (0, wanted // 2, wanted - 1):
        engine.free = free
        look(engine)
        assert shown(engine, ref, path="/data/checkpoint-100/model.pt", free_bytes=free)
        assert engine.reason(ref)[1]["wanted_bytes"] == wanted
        assert engine.job(ref).attempt_number == 1
    engine.free = wanted
    look(engine)
    next_attempt(engine, ref, 2)
    assert engine.reason(ref)[0] is None


def test_the_delay_is_kept_where_there_is_room_at_once(engine):
    engine.free = 1 << 50
    ref = engine.running(max_retries=3)
    fail(engine, ref, FULL)
    engine.wait(ref, "retrying")
    engine.yard.runtime.space_waits.look()
    assert engine.reason(ref)[0] == "retry_delay"
    next_attempt(engine, ref, 2)


def test_it_can_be_cancelled_meanwhile(engine):
    ref = engine.running(max_retries=3)
    fail(engine, ref, FULL)
    engine.wait(ref, "retrying")
    look(engine)
    engine.yard.cancel(ref, ANN)
    engine.wait(ref, "cancelled")
    engine.free = 1 << 50
    look(engine)
    assert engine.status(ref) == "cancelled"
    assert engine.job(ref).attempt_number == 1


def test_a_restarted_server_goes_on_waiting(engine):
    ref = engine.running(max_retries=3)
    fail(engine, ref, FULL)
    engine.wait(ref, "retrying")
    look(engine)
    engine.restart()
    look(engine)
    assert engine.job(ref).status is JobStatus.RETRYING
    assert shown(engine, ref, free_bytes=0)
    engine.free = 1 << 50
    look(engine)
    next_attempt(engine, ref, 2)


def test_a_disk_that_cannot_be_asked_holds_nobody_up(engine):
    engine.free = None
    ref = engine.running(max_retries=3)
    fail(engine, ref, FULL)
    next_attempt(engine, ref, 2)


@pytest.mark.parametrize(
    ("largest", "total", "wanted"),
    [
        (10 * GIB, 1000 * GIB, 11 * GIB),
        (None, 1000 * GIB, GIB),
        (1000, 1000 * GIB, GIB),
        (None, 100 << 20, 5 << 20),
        (None, None, GIB),
        (95 << 20, 100 << 20, 90 << 20),
    ],
)
def test_how_much_is_wanted(largest, total, wanted):
    assert space.wanted_bytes(largest, total) == pytest.approx(wanted, rel=1e-6)
