"""Whatever may let a job start lets it start at once. There is no tick in these tests."""

import pytest

from engine_yard import ANN
from runyard.domain.job import Priority
from runyard.domain.resources import Load
from scripted_machine import ScriptedMachine
from yards import until


@pytest.fixture
def full(make_engine):
    """One slot, which is taken."""
    engine = make_engine(max_concurrent=1)
    engine.blocker = engine.running()
    return engine


def test_a_submit(engine):
    """R40, R52; TC-02"""
    engine.wait(engine.submit(), "running")


@pytest.mark.parametrize("code", [0, 1])
def test_an_end(full, code):
    """R52: good or bad"""
    ref = full.submit()
    full.finish(full.blocker, code)
    full.wait(ref, "running")


def test_a_cancel_of_what_runs(full):
    ref = full.submit()
    full.yard.cancel(full.blocker, ANN)
    full.wait(ref, "running")


def test_an_end_nobody_told_of(full):
    """R52: found by reconciling."""
    ref = full.submit()
    full.executor.finish(f"{full.blocker}.1", 0, tell=False)
    full.look()
    full.wait(ref, "running")


@pytest.fixture
def starving(make_engine):
    """A large job has waited so long that what is free is kept for it; a small one waits."""
    engine = make_engine(starvation_s=60)
    engine.running(cpu_cores=40)
    engine.large = engine.submit(cpu_cores=60)
    engine.clock.ahead += 120
    engine.yard.runtime.wake()
    engine.small = engine.submit(cpu_cores=20)
    params = engine.wait_reason(engine.small, "reserved")
    assert params["job"] == engine.large
    return engine


def test_a_cancel_of_a_waiting_job(starving):
    """R52: what was kept for it is free."""
    starving.yard.cancel(starving.large, ANN)
    starving.wait(starving.small, "running")


def test_a_hold(starving):
    """R52: a held job reserves nothing."""
    starving.yard.hold(starving.large, ANN)
    starving.wait(starving.small, "running")


def test_a_higher_priority(starving):
    """R10: moved before the one that has reserved."""
    starving.yard.enqueue(starving.small, ANN, Priority.HIGH)
    starving.wait(starving.small, "running")


def test_a_release(engine):
    ref = engine.submit(hold=True)
    assert engine.status(ref) == "pending"
    engine.yard.release(ref, ANN)
    engine.wait(ref, "running")


def test_an_enqueue(engine):
    """R10"""
    ref = engine.submit(hold=True)
    engine.yard.enqueue(ref, ANN, Priority.LOW)
    engine.wait(ref, "running")


def test_a_retry(engine):
    ref = engine.running()
    engine.finish(ref, 1)
    engine.wait(ref, "failed")
    engine.yard.retry(ref, ANN)
    engine.wait(ref, "running")
    assert engine.job(ref).attempt_number == 2


def test_the_end_of_a_retry_delay(make_engine):
    """R21: the loop sleeps until then, not until its tick."""
    engine = make_engine(retry_delays=(0.2,))
    ref = engine.running(max_retries=1)
    engine.finish(ref, 1)
    until(lambda: engine.job(ref).attempt_number == 2)
    engine.wait(ref, "running")


def test_a_dependency(engine):
    """Met by an end, or by the cancel of one whose end is enough."""
    first = engine.running()
    held = engine.submit(hold=True)
    after = engine.submit(depends_on=[first])
    whatever = engine.submit(depends_on=[{"job": held, "on": "end"}])
    engine.wait_reason(after, "dependency")
    engine.finish(first)
    engine.wait(after, "running")
    engine.yard.cancel(held, ANN)
    engine.wait(whatever, "running")


def test_an_undrain(engine):
    """Undrained, it takes jobs at once."""
    engine.yard.drain("node-1", ANN)
    ref = engine.submit()
    engine.wait_reason(ref, "node_drained")
    engine.yard.undrain("node-1", ANN)
    engine.wait(ref, "running")


def test_an_unfence(make_engine):
    engine = make_engine(machine=ScriptedMachine(gpu_count=1))
    engine.yard.fence("0", "memory errors", ANN)
    ref = engine.submit(gpu_count=1)
    assert engine.status(ref) == "pending"
    engine.yard.unfence("0", ANN)
    engine.wait(ref, "running")


def test_a_start_of_the_queue(engine):
    engine.yard.stop_queue(ANN)
    ref = engine.submit()
    engine.wait_reason(ref, "dispatch_paused")
    engine.yard.start_queue(ANN)
    engine.wait(ref, "running")


def test_a_gate_that_opens(make_engine):
    """R12: seen by the next measurement."""
    engine = make_engine(opened=False)
    engine.machine.measured = Load(99.0, 10.0, 10.0)
    engine.open()
    ref = engine.submit()
    engine.wait_reason(ref, "gate")
    engine.machine.measured = Load(1.0, 10.0, 10.0)
    engine.wait(ref, "running")


def test_an_opening_yard(make_engine):
    """What waited while no server ran."""
    engine = make_engine(opened=False)
    ref = engine.submit()
    assert engine.status(ref) == "pending"
    engine.open()
    engine.wait(ref, "running")


@pytest.mark.parametrize("how", ["one submit", "an end", "the queue"])
def test_more_placements_than_one_pass_makes(make_engine, how):
    """R11: all slots are filled without waiting for something else to happen."""
    engine = make_engine(max_concurrent=450)
    tiny = {"command": "true", "cpu_cores": 0.001, "memory_gb": 0.001}
    if how == "one submit":
        engine.submit_all([tiny] * 460)
    elif how == "the queue":
        engine.yard.stop_queue(ANN)
        engine.submit_all([tiny] * 460)
        engine.yard.start_queue(ANN)
    else:
        blocker = engine.running(cpu_cores=64)
        engine.submit_all([tiny] * 460)
        assert len(engine.executor.running()) == 1
        engine.finish(blocker)
    count = lambda: len(engine.executor.running())  # noqa: E731
    until(lambda: count() == 450, words=count)
