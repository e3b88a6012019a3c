"""Alerts: one for each trouble, told once, seen by who may, closed when the trouble is over."""

from dataclasses import replace

import pytest

from engine_yard import ANN, BOB
from runyard.domain import errors
from runyard.domain.monitoring.alert import AlertFilter, AlertLevel, AlertStatus, NewAlert
from runyard.engine.access.actor import Actor
from runyard.probes.base import GpuProcess
from scripted_machine import ScriptedMachine
from yards import until

EVE = Actor("eve", "viewer", 3)
FROZEN = {"pid": 4711, "state": "D", "name": "train", "where": "nfs_wait", "user": "ann"}


def alerts(engine, **chosen):
    return list(engine.yard.alert_desk.list(AlertFilter(**chosen), 100, None).alerts)


def found(key="slow", **fields):
    return NewAlert(key, AlertLevel.WARNING, "slow", **fields)


def test_the_same_trouble_opens_one_alert_and_one_event(engine):
    ref = engine.running()
    desk, job_id = engine.yard.alert_desk, engine.job(ref).id
    first = desk.open(found(job_id=job_id, evidence={"n": 1}))
    again = desk.open(found(job_id=job_id, evidence={"n": 2}))
    assert (again.id, again.times, again.evidence) == (first.id, 2, {"n": 2})
    assert again.job_ref == ref
    assert desk.close("slow").status is AlertStatus.CLOSED
    assert desk.close("slow") is None
    assert desk.open(found(job_id=job_id)).id != first.id
    told = [code for code in engine.events(ref) if code.startswith("alert_")]
    assert told == ["alert_opened", "alert_closed", "alert_opened"]


def test_who_may_acknowledge_and_close(engine):
    """The owner of its job and admins; what concerns no job, admins."""
    ref = engine.running(actor=BOB)
    desk = engine.yard.alert_desk
    of_job = desk.open(found("a", job_id=engine.job(ref).id))
    of_machine = desk.open(found("b"))
    for act in (desk.acknowledge, desk.close_by_person):
        with pytest.raises(errors.Forbidden):
            act(of_job.id, EVE)
        with pytest.raises(errors.Forbidden):
            act(of_machine.id, BOB)
        with pytest.raises(errors.NotFound):
            act(4711, ANN)
    seen = desk.acknowledge(of_job.id, BOB)
    assert (seen.status, seen.acknowledged_by) == (AlertStatus.ACKNOWLEDGED, "bob")
    assert desk.acknowledge(of_job.id, ANN).acknowledged_by == "bob"
    assert desk.open(found("a", job_id=engine.job(ref).id)).status is AlertStatus.ACKNOWLEDGED
    assert desk.close_by_person(of_machine.id, ANN).status is AlertStatus.CLOSED
    assert desk.close_by_person(of_machine.id, ANN).status is AlertStatus.CLOSED
    with pytest.raises(errors.Conflict):
        desk.acknowledge(of_machine.id, ANN)


def test_what_cannot_be_killed_raises_an_alert_and_holds_what_it_has(make_engine):
    """R5, R2: critical, with pid, state, place and user; the GPU goes to nobody else; when the
    job has ended at last the alert closes by itself."""
    engine = make_engine(machine=ScriptedMachine(gpu_count=1))
    ref = engine.running(gpu_count=1, ports=1)
    following = engine.submit(gpu_count=1)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, ANN)
    engine.executor.cannot_kill(f"{ref}.1", FROZEN)
    [alert] = until(lambda: alerts(engine, codes=("cannot_be_killed",)))
    assert alert.level is AlertLevel.CRITICAL
    assert alert.params["processes"] == [FROZEN]
    assert (alert.job_ref, alert.attempt_id, alert.node_id) == (ref, f"{ref}.1", "node-1")
    assert engine.status(following) == "pending"
    engine.look()
    until(lambda: alerts(engine)[0].times > 1)
    assert engine.status(following) == "pending"
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    engine.wait(following, "running")
    assert alerts(engine)[0].status is AlertStatus.CLOSED
    assert engine.events(ref).count("alert_opened") == 1
    assert engine.events(ref).count("alert_closed") == 1


def test_gpu_memory_that_does_not_come_back_names_its_holder(make_engine, monkeypatch):
    """R2: the job says that it waits for the memory, then an alert says who has it."""
    monkeypatch.setattr("runyard.engine.end.gpu_return._ALERT_AFTER_S", 0.6)
    engine = make_engine(machine=ScriptedMachine(gpu_count=1))
    ref = engine.running(gpu_count=1)
    engine.machine.tags[4711] = engine.attempts(ref)[0].tag
    engine.machine.on_gpu["GPU-0"] = [GpuProcess(4711, 40_000, "ann", "python")]
    engine.yard.cancel(ref, ANN)
    params = engine.wait_reason(ref, "waiting_for_gpu_memory")
    assert (params["gpus"], params["by"]) == ([0], "ann")
    [alert] = until(lambda: alerts(engine, codes=("gpu_memory_held",)))
    [gpu] = alert.params["gpus"]
    assert gpu["holders"] == [{"pid": 4711, "user": "ann", "name": "python"}]
    engine.machine.on_gpu.clear()
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("user_cancelled", {"by": "ann"})
    until(lambda: alerts(engine)[0].status is AlertStatus.CLOSED)


def test_a_cancel_that_hangs_is_told_and_swept_again_and_again(make_engine):
    """R6: after five minutes, and again every five minutes, until it is gone."""
    engine = make_engine()
    ref = engine.running(grace_s=40, actor=BOB)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, BOB)
    name = f"{ref}.1"
    engine.executor.cannot_kill(name, FROZEN)
    engine.wait_reason(ref, "stuck")
    stale = engine.yard.runtime._stale_cancels
    assert stale.look() == 0
    engine.clock.ahead += 301
    assert stale.look() == 1
    assert engine.executor.sweeps == [name]
    last = engine.executor.stops[name][-1]
    assert (last.seq, last.grace_s, last.requested_by, last.cause) == (2, 0.0, "bob", "user")
    [alert] = alerts(engine, codes=("cancel_stale",))
    assert alert.level is AlertLevel.CRITICAL
    assert alert.params["holders"] == [FROZEN]
    assert (alert.params["by"], alert.params["seconds"] >= 300) == ("bob", True)
    assert [action["action"] for action in alert.actions_taken] == ["swept"]
    engine.clock.ahead += 100
    assert stale.look() == 0
    engine.clock.ahead += 201
    assert stale.look() == 1
    assert alerts(engine, codes=("cancel_stale",))[0].times == 2
    assert engine.events(ref).count("job_swept") == 2
    assert engine.status(ref) == "cancelling"
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("user_cancelled", {"by": "bob"})
    assert {alert.status for alert in alerts(engine)} == {AlertStatus.CLOSED}


def test_a_long_grace_is_no_hanging_cancel(make_engine):
    """R6: not before its grace is over, however long that is."""
    engine = make_engine()
    ref = engine.running(grace_s=3000)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, ANN)
    stale = engine.yard.runtime._stale_cancels
    engine.clock.ahead += 2000
    assert stale.look() == 0
    engine.clock.ahead += 1001
    assert stale.look() == 1


def test_a_cancel_of_a_silent_server_is_told_by_the_others(postgres_url, make_engine):
    """R6: nobody else can sweep there, but people are told."""
    one = make_engine(database_url=postgres_url)
    two = make_engine(node_id="node-2", database_url=postgres_url)
    one.yard.drain("node-1", ANN)
    ref = one.submit()
    two.wait(ref, "running")
    two.close()
    [silent] = [node for node in one.yard.nodes() if node.node_id == "node-2"]
    old = replace(silent, heartbeat_at=silent.heartbeat_at - 600)
    one.store.write(lambda tx: tx.put_node(old))
    one.yard.cancel(ref, ANN)
    one.look(ahead=400)
    one.wait_reason(ref, "node_unreachable")
    until(lambda: one.yard.runtime._stale_cancels.look() or alerts(one))
    [alert] = alerts(one)
    assert (alert.code, alert.node_id) == ("cancel_stale", "node-2")
    assert alert.params["waits_for"] == "node_unreachable"
    assert "job_swept" not in one.events(ref)
