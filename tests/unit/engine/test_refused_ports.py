"""Ports that jobs get, and those they do not get because somebody else uses them."""

import pytest

from runyard.domain.states import AttemptEnd
from runyard.engine.schedule.refused_ports import AVOID_S
from scripted_cluster import ScriptedCluster, worker
from scripted_machine import ScriptedMachine
from yards import until

FIRST = 38000
GANG = {"executor": "ray", "distributed": {"nodes": 2, "placement": "spread"}}


@pytest.fixture
def machine():
    return ScriptedMachine()


@pytest.fixture
def engine(make_engine, machine):
    return make_engine(machine=machine)


@pytest.fixture
def cluster(tmp_path):
    return ScriptedCluster(tmp_path / "cluster", [worker("w1"), worker("w2")])


@pytest.fixture
def on_cluster(make_engine, cluster):
    return make_engine(executor=cluster)


def ports(engine, ref):
    return [attempt.ports for attempt in engine.attempts(ref)]


def again(engine, ref, number):
    until(lambda: engine.job(ref).attempt_number == number)
    engine.wait(ref, "running")
    return engine.attempts(ref)[-1]


def refuse(engine, ref):
    """What the executor of a cluster tells when the first port of an attempt is in use there."""
    part = engine.attempts(ref)[-1].slices[0]
    port = part.ports[0]
    told = {"slice": part.index, "node": part.node, "port": port}
    detail = {"port": port, "node": part.node, "refused": [told]}
    engine.finish(ref, None, cause="port_taken", detail=detail)
    return part.machine_id, port


def test_every_grant_begins_behind_the_last(engine):
    """R55: also where all before it were given back."""
    for start in (FIRST, FIRST + 2):
        ref = engine.running(ports=2)
        assert ports(engine, ref) == [(start, start + 1)]
        engine.finish(ref)
        engine.wait(ref, "completed")


def test_a_retry_does_not_get_the_port_of_the_attempt_before_it(engine):
    """R55"""
    ref = engine.running(ports=1, max_retries=1)
    engine.finish(ref, None, cause="supervisor_lost")
    again(engine, ref, 2)
    assert ports(engine, ref) == [(FIRST,), (FIRST + 1,)]


def test_ports_that_somebody_else_listens_on_are_left_out(engine, machine):
    """R55"""
    machine.listening = frozenset({22, FIRST, FIRST + 2})
    ref = engine.running(ports=2)
    assert ports(engine, ref) == [(FIRST + 1, FIRST + 3)]


def test_nobody_looks_at_ports_for_jobs_that_want_none(engine, machine):
    engine.running()
    assert machine.asked_for_ports == 0
    engine.running(ports=1)
    assert machine.asked_for_ports == 1


def test_a_pool_that_others_listen_on_is_told_as_full(make_engine, machine):
    """R33"""
    engine = make_engine(machine=machine, port_range=(FIRST, FIRST + 1))
    machine.listening = frozenset({FIRST, FIRST + 1})
    ref = engine.submit(ports=1)
    params = engine.wait_reason(ref, "not_enough")
    assert (params["resource"], params["free"], params["total"]) == ("port", 0, 2)


def test_a_port_in_use_on_a_node_costs_no_retry_and_is_avoided_there(on_cluster):
    """R55: the attempt never started; the next has another port at once, for a while also when
    the pool has come round."""
    engine = on_cluster
    ref = engine.submit(**GANG, max_retries=0)
    engine.wait(ref, "running")
    machine_id, port = refuse(engine, ref)
    second = again(engine, ref, 2)
    first = engine.attempts(ref)[0]
    assert (first.end, first.cause) == (AttemptEnd.NEVER_STARTED, "port_taken")
    assert first.diagnosis["explanation"]["params"] == {"port": port, "node": first.slices[0].node}
    assert second.slices[0].ports[0] == port + 1
    assert engine.job(ref).charged == 0
    now = engine.clock()
    refused = engine.yard.runtime.placer.refused_ports
    assert refused.of(machine_id, now) == {port}
    assert refused.of("another", now) == frozenset()
    assert refused.of(machine_id, now + AVOID_S + 1) == frozenset()


def test_a_small_pool_waits_until_a_refused_port_is_tried_again(make_engine, cluster):
    engine = make_engine(executor=cluster, port_range=(FIRST, FIRST))
    ref = engine.submit(executor="ray", ports=1)
    engine.wait(ref, "running")
    refuse(engine, ref)
    again(engine, ref, 2)  # on the other machine
    refuse(engine, ref)
    engine.wait(ref, "retrying")
    engine.clock.ahead += 5  # the delay of a second free retry
    engine.yard.runtime.wake()
    engine.wait_reason(ref, "not_enough")
    engine.let_time_pass(lambda: engine.status(ref) == "running")


def test_a_granted_port_that_the_log_says_is_in_use_is_avoided(engine):
    """R21, R55"""
    ref = engine.running(ports=1, max_retries=1, retry_delays=[0])
    attempt = engine.attempts(ref)[0]
    with open(engine.executor.log_path(attempt.attempt_id), "w") as log:
        log.write(f"OSError: [Errno 98] Address already in use: ('0.0.0.0', {FIRST})\n")
    engine.finish(ref, 1)
    refused = engine.yard.runtime.placer.refused_ports
    until(lambda: refused.of("machine-1", engine.clock()) == {FIRST})
