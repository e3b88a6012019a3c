"""Why a job waits and when it may start is what really holds, not what held once."""

import time

import pytest

from engine_yard import ANN
from runyard.domain.job import Priority
from runyard.domain.resources import Load
from yards import until


@pytest.fixture
def busy(make_engine):
    """One slot, taken by a job that ends in an hour at the latest."""
    engine = make_engine(max_concurrent=1)
    engine.blocker = engine.running(timeout_s=3600)
    return engine


def test_an_estimate_where_the_queue_decides(busy):
    """R13: as early as now, as late as the time limit of what runs."""
    ref = busy.submit()
    wait = busy.yard.job(ref).wait
    assert wait.reason.code == "max_concurrent"
    assert (wait.position, wait.blockers) == (1, (busy.blocker,))
    assert wait.est_start_low <= time.time() + 5
    latest = busy.job(busy.blocker).started_at + 3600
    assert wait.est_start_high == pytest.approx(latest, abs=5)


def blockers_listed(engine):
    return {view.job.ref: view.wait.blockers for view in engine.yard.queue_status().waiting}


def test_the_queue_tells_behind_whom_each_row_stands(busy):
    """R13: those above it and what runs, of a dependency the jobs it needs; as many as help."""
    first, second = busy.submit(), busy.submit()
    later = busy.submit(depends_on=[second])
    held = busy.submit(hold=True)
    assert blockers_listed(busy) == {
        first: (busy.blocker,),
        second: (first, busy.blocker),
        later: (second,),
        held: (),
    }
    more = [busy.submit() for _ in range(6)]
    five = (first, second, *more[:3])
    assert blockers_listed(busy)[more[-1]] == (*five, busy.blocker)


def assert_no_estimate(engine, ref, code):
    engine.wait_reason(ref, code)
    wait = engine.yard.job(ref).wait
    assert (wait.est_start_low, wait.est_start_high) == (None, None)
    [listed] = [view for view in engine.yard.queue_status().waiting if view.job.ref == ref]
    assert (listed.wait.est_start_low, listed.wait.est_start_high) == (None, None)


def test_no_estimate_for_what_never_fits(busy):
    """R13"""
    assert_no_estimate(busy, busy.submit(cpu_cores=4000), "never_fits")


def test_no_estimate_while_the_queue_is_stopped(busy):
    """R13: nobody knows when a person starts it again."""
    busy.yard.stop_queue(ANN)
    ref = busy.submit()
    assert_no_estimate(busy, ref, "dispatch_paused")
    busy.finish(busy.blocker)
    busy.wait(busy.blocker, "completed")
    assert_no_estimate(busy, ref, "dispatch_paused")


def test_no_estimate_behind_a_gate(make_engine):
    """R12, R13"""
    engine = make_engine(opened=False)
    engine.machine.measured = Load(99.0, 10.0, 10.0)
    engine.open()
    ref = engine.submit()
    assert_no_estimate(engine, ref, "gate")
    assert engine.reason(ref)[1]["gate"] == "cpu"


def test_no_estimate_on_a_drained_node(engine):
    engine.yard.drain("node-1", ANN)
    assert_no_estimate(engine, engine.submit(), "node_drained")


def test_a_held_job_has_neither_place_nor_estimate(engine):
    ref = engine.submit(hold=True)
    assert_no_estimate(engine, ref, "held")
    assert engine.yard.job(ref).wait.position is None


def test_a_retry_whose_delay_is_over_says_why_it_really_waits(make_engine):
    """R21: not the delay of a minute ago."""
    engine = make_engine(max_concurrent=1)
    ref = engine.running(max_retries=1)
    engine.finish(ref, 3)
    engine.wait(ref, "retrying")
    code, params = engine.reason(ref)
    assert (code, params["attempt"], params["cause"]["params"]) == ("retry_delay", 1, {"code": 3})
    wait = engine.yard.job(ref).wait
    assert wait.position is None
    assert wait.est_start_low == pytest.approx(params["until"], abs=0.001)
    engine.running()
    engine.let_time_pass(lambda: engine.job(ref).ready)
    assert engine.wait_reason(ref, "max_concurrent")["limit"] == 1
    assert engine.status(ref) == "retrying"
    assert engine.yard.job(ref).wait.position == 1
    [listed] = [view for view in engine.yard.queue_status().waiting if view.job.ref == ref]
    assert listed.reason.code == "max_concurrent"


def test_held_and_released_during_the_delay(engine):
    """R21: a release does not shorten the delay of a retry, and the reason tells it."""
    ref = engine.running(max_retries=1)
    engine.finish(ref, 3)
    engine.wait(ref, "retrying")
    until_when = engine.job(ref).not_before
    engine.yard.hold(ref, ANN)
    assert engine.reason(ref)[0] == "held"
    engine.yard.release(ref, ANN)
    code, params = engine.reason(ref)
    assert (code, params["until"], params["attempt"]) == ("retry_delay", until_when, 1)
    assert not engine.job(ref).ready
    engine.let_time_pass(lambda: engine.status(ref) == "running")


def test_held_until_after_the_delay(engine):
    """R21: the delay's end does not end a hold, nor does the hold make it longer."""
    ref = engine.running(max_retries=1)
    engine.finish(ref, 3)
    engine.wait(ref, "retrying")
    engine.yard.hold(ref, ANN)
    engine.clock.ahead += 7200
    other = engine.running()
    assert engine.reason(ref)[0] == "held"
    engine.yard.release(ref, ANN)
    engine.wait(ref, "running")
    assert engine.status(other) == "running"


def test_enqueued_during_the_delay(engine):
    """R21: a higher priority, and still the delay."""
    ref = engine.running(max_retries=1)
    engine.finish(ref, 3)
    engine.wait(ref, "retrying")
    engine.yard.enqueue(ref, ANN, Priority.HIGH)
    assert engine.reason(ref)[0] == "retry_delay"
    assert engine.job(ref).priority == "high"


def test_a_reason_goes_with_its_cause(busy):
    """R13: the next one of the same shape is not told what held for the last."""
    busy.yard.stop_queue(ANN)
    first = busy.submit()
    busy.wait_reason(first, "dispatch_paused")
    busy.yard.start_queue(ANN)
    busy.wait_reason(first, "max_concurrent")
    busy.yard.cancel(first, ANN)
    until(lambda: busy.status(first) == "cancelled")
    second = busy.submit()
    assert busy.wait_reason(second, "max_concurrent") == {"limit": 1, "running": 1}
