"""The end of a server: everything of its own is ended, also what was being started."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from watched_store import WatchedStore

from runyard.domain import errors, events
from yards import until


def end_all(engine, **options):
    return engine.yard.runtime.end_all(**options)


def test_everything_is_cancelled_because_of_the_shutdown(engine):
    """R51: all at once, with the proof; what waits goes on waiting."""
    running = [engine.running() for _ in range(4)]
    waiting = engine.submit()
    assert end_all(engine) is True
    for ref in running:
        assert engine.status(ref) == "cancelled"
        assert engine.reason(ref) == ("shutdown", {})
        [stop] = engine.executor.stops[f"{ref}.1"]
        assert (stop.cause, stop.requested_by) == ("shutdown", "system")
    assert engine.status(waiting) == "pending"
    assert engine.executor.running() == []
    with pytest.raises(errors.ShuttingDown):
        engine.submit()
    engine.restart()
    engine.wait(waiting, "running")


def test_a_placement_under_way_is_not_overlooked(make_engine):
    """R51: decided before the shutdown begins, committed after it has looked."""
    engine = make_engine(wrap=WatchedStore)
    deciding, go_on = threading.Event(), threading.Event()

    def pause(tx):
        if tx.live_attempts():
            deciding.set()
            go_on.wait(60)

    engine.store.after = pause
    submitting = threading.Thread(target=engine.submit)
    submitting.start()
    assert deciding.wait(60)
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(end_all, engine)
        until(lambda: engine.yard.runtime.shutting_down)
        go_on.set()
        assert ended.result(60) is True
    submitting.join(60)
    [ref] = engine.refs()
    assert engine.status(ref) == "cancelled"
    assert engine.reason(ref)[0] == "shutdown"
    assert engine.executor.running() == []


def test_a_hand_over_that_comes_after_the_stop(engine):
    """R51: cancelled before it started; nothing of it ever runs."""
    engine.executor.gate.clear()
    submitting = threading.Thread(target=engine.submit)
    submitting.start()
    [ref] = until(engine.refs)
    engine.wait(ref, "scheduled")
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(end_all, engine)
        until(lambda: engine.executor.stops.get(f"{ref}.1"))
        engine.executor.gate.set()
        assert ended.result(60) is True
    submitting.join(60)
    [attempt] = engine.attempts(ref)
    assert (attempt.cause, attempt.started_at) == ("cancelled_before_start", None)
    assert engine.status(ref) == "cancelled"


def test_what_does_not_end_is_left_in_time(engine):
    """R51: the answer is False, the job stays cancelling, and the next server ends it."""
    ref = engine.running(grace_s=600)
    engine.executor.stubborn = True
    began = time.monotonic()
    assert end_all(engine, patience_s=0.3) is False
    assert time.monotonic() - began < 60
    assert engine.status(ref) == "cancelling"
    assert engine.executor.stops[f"{ref}.1"][-1].grace_s == 600
    engine.executor.stubborn = False
    engine.restart()
    assert engine.status(ref) == "cancelling", "it was asked to already"
    engine.finish(ref, 0)
    engine.wait(ref, "cancelled")
    assert engine.reason(ref)[0] == "shutdown"


def test_force_leaves_no_grace(engine):
    """R51: a second signal, while the end is being waited for."""
    ref = engine.running(grace_s=600)
    engine.executor.stubborn = True
    stops = lambda: engine.executor.stops.get(f"{ref}.1", [])  # noqa: E731

    def force():
        engine.executor.stubborn = not stops()
        return bool(stops())

    assert end_all(engine, force=force) is True
    assert [(stop.seq, stop.grace_s) for stop in stops()] == [(1, 600), (2, 0)]
    assert engine.status(ref) == "cancelled"


def test_each_job_is_asked_once_and_once_more_by_force(engine):
    """R51: however often the server looks while something does not die."""
    ref = engine.running(grace_s=600)
    engine.executor.stubborn = True
    looks = []

    def force():
        looks.append(True)
        if len(looks) == 8:
            engine.finish(ref, None, signal=9, cause="cancelled")
        return len(looks) > 3

    assert end_all(engine, force=force) is True
    assert [stop.grace_s for stop in engine.executor.stops[f"{ref}.1"]] == [600, 0]
    asked = (events.JOB_CANCELLING, events.JOB_FORCE_KILLED)
    assert [code for code in engine.events(ref) if code in asked] == [*asked]


def test_a_job_that_ends_by_itself_meanwhile_keeps_its_end(engine):
    ref = engine.running()

    def force():
        """Asked for between the look at what runs and the request to end it."""
        engine.finish(ref)
        engine.wait(ref, "completed")
        return False

    assert end_all(engine, force=force) is True
    assert engine.status(ref) == "completed"
    assert f"{ref}.1" not in engine.executor.stops
