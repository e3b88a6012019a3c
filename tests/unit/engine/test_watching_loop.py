"""One look at a time: findings become alerts and health, and end as they should."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine_yard import ANN, BOB
from runyard.domain.monitoring import stalled_training
from runyard.domain.monitoring.alert import AlertFilter
from runyard.domain.monitoring.series import Sample
from runyard.engine.watch import open_findings, watching
from runyard.engine.watch.board import Progress
from runyard.engine.watch.rule_desk import Wish
from runyard.settings import DETECTORS
from runyard.supervisor.stack_dump import Dump
from yards import until

STATUSES = ("open", "acknowledged")


@pytest.fixture
def engine(make_engine):
    return by_hand(make_engine(monitoring_interval=3600.0, stall_min_s=0.05))


def by_hand(engine):
    """Looked at by the test alone: a server's own first look comes at a moment nobody knows."""
    engine.yard.runtime.watching._loop.stop()
    return engine


def look(engine) -> None:
    engine.yard.runtime.watching.look()


def tell(engine, ref, name, *values, step=0):
    job, at = engine.job(ref), engine.clock()
    samples = [Sample(name, at + i / 1000, value, step + i) for i, value in enumerate(values)]
    engine.parts.board.record(job.id, job.attempt_number, samples)


def step(engine, ref, number, *, phase="training"):
    now = engine.clock()
    told = Progress(None, number, None, None, None, None, "report", phase, now, now)
    engine.parts.board.set_progress(engine.job(ref).id, told)


def alerts(engine, code=None):
    codes = () if code is None else (code,)
    return engine.yard.alert_desk.list(AlertFilter(codes=codes), 100, None).alerts


def rule(engine, expression, actor=ANN, **wish):
    return engine.yard.rule_desk.create(Wish("mine", expression, **wish), actor)


def test_every_detector_can_be_turned_off():
    assert sorted((*watching.OF_JOBS, *watching.OF_NODES)) == sorted(DETECTORS)


def test_a_finding_is_one_alert_and_the_health_of_its_job(engine):
    ref = engine.running()
    tell(engine, ref, "loss", 1.0, math.nan)
    look(engine)
    tell(engine, ref, "loss", math.nan, step=5)
    look(engine)
    [found] = alerts(engine)
    assert (found.code, found.level, found.status) == ("not_finite", "error", "open")
    assert found.attempt_id == f"{ref}.1"
    health = engine.parts.board.health(engine.job(ref).id)
    assert (health.level, health.code) == ("error", "not_finite")


def test_one_bad_value_is_one_however_often_it_is_looked_at(engine):
    ref = engine.running()
    tell(engine, ref, "loss", 1.0, math.nan)
    for _ in range(4):
        look(engine)
    [found] = alerts(engine)
    assert (found.level, found.params["times"]) == ("warning", 1)


def test_bad_values_between_two_looks_are_not_missed(engine):
    ref = engine.running()
    tell(engine, ref, "loss", 1.0)
    look(engine)
    tell(engine, ref, "loss", math.nan, *[1.0] * 40, step=1)
    look(engine)
    assert [found.code for found in alerts(engine)] == ["not_finite"]


def test_a_job_without_findings_is_well(engine):
    ref = engine.running()
    look(engine)
    assert engine.parts.board.health(engine.job(ref).id).level == "unknown"
    tell(engine, ref, "loss", 1.0)
    look(engine)
    assert engine.parts.board.health(engine.job(ref).id).level == "ok"


def test_a_detector_that_is_off_is_silent(make_engine):
    engine = by_hand(make_engine(monitoring_interval=3600.0, detectors_off=("not_finite",)))
    ref = engine.running()
    tell(engine, ref, "loss", math.nan, math.nan)
    look(engine)
    assert not alerts(engine)


def test_the_end_of_an_attempt_closes_its_alerts(engine):
    ref = engine.running()
    tell(engine, ref, "loss", math.nan, math.nan)
    look(engine)
    engine.finish(ref, 1)
    engine.wait(ref, "failed")
    look(engine)
    [found] = alerts(engine)
    assert found.status == "closed"


def test_a_finding_that_is_over_is_closed_after_a_while(engine):
    ref = engine.running()
    watch = engine.yard.runtime.watching
    watch._findings._clear_s = 0.0
    tell(engine, ref, "loss", 1.0, math.nan)
    look(engine)
    tell(engine, ref, "loss", *[1.0] * 12, step=10)
    look(engine)
    look(engine)
    [found] = alerts(engine)
    assert found.status == "closed"
    assert engine.parts.board.health(engine.job(ref).id).level == "ok"


def test_another_server_goes_on_where_one_stopped(engine):
    """Alerts that were open are found again or closed, never doubled."""
    ref, other = engine.running(), engine.running()
    for one in (ref, other):
        tell(engine, one, "loss", math.nan, math.nan)
    look(engine)
    assert len(alerts(engine)) == 2
    engine.close()
    engine._compose()
    engine.executor.finish(f"{other}.1", 1, tell=False)
    engine.open()
    engine.wait(other, "failed")
    tell(engine, ref, "loss", math.nan, math.nan)
    look(engine)
    found = alerts(engine)
    assert len(found) == 2
    assert {one.job_ref: one.status.value for one in found} == {ref: "open", other: "closed"}


@pytest.fixture
def steady(monkeypatch):
    """The clock of stalls, moved by the test alone: however long a look takes, it is no stall."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def stall(engine, ref, steady):
    for number in range(6):
        step(engine, ref, number)
        look(engine)
        steady.now += 0.01

    def found():
        steady.now += 1
        look(engine)
        return alerts(engine, stalled_training.CODE)

    return until(found)[0]


def test_a_stall_is_told_with_what_could_be_saved(engine, steady):
    ref = engine.running()
    found = stall(engine, ref, steady)
    assert found.params["step"] == 5
    assert "evidence" in found.evidence
    assert engine.status(ref) == "running"


def test_an_alert_keeps_the_line_and_the_stacks_it_was_opened_with(engine, steady):
    """However long it stays open and how often it is told again."""
    ref = engine.running()
    log = Path(engine.executor.log_path(f"{ref}.1", "", 0))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("begin\niter 5: loss 1.0, time 12ms\nalive\n")
    found = stall(engine, ref, steady)
    line = {"text": "iter 5: loss 1.0, time 12ms", "number": 2}
    assert found.evidence["log_line"] == line
    saved = found.evidence["evidence"]
    for _ in range(4):
        steady.now += open_findings.AGAIN_S
        look(engine)
    [found] = alerts(engine, stalled_training.CODE)
    assert found.times > 1
    assert (found.evidence["log_line"], found.evidence["evidence"]) == (line, saved)


@pytest.mark.parametrize(
    ("by", "command", "unread"),
    [
        (["proc"], "python3 train.py", True),
        (["proc", "proc"], "/opt/env/bin/python -m torch.distributed.run", True),
        (["proc", "py-spy"], "python3 train.py", False),
        (["faulthandler"], "python3 train.py", False),
        (["proc"], "./a-program-in-c", False),
    ],
)
def test_a_stall_tells_that_stacks_could_not_be_read(
    engine, steady, monkeypatch, by, command, unread
):
    ref = engine.running()
    dumps = [
        Dump(7 + n, None, "x", how, f"process 7 (x): {command}\n") for n, how in enumerate(by)
    ]
    monkeypatch.setattr(engine.executor, "stacks", lambda *_: dumps)
    assert stall(engine, ref, steady).evidence["stacks_unread"] is unread


def test_a_stall_may_stop_the_job_after_its_evidence_is_saved(make_engine, steady):
    wanted = {"stall_min_s": 0.05, "stall_action": "stop"}
    engine = by_hand(make_engine(monitoring_interval=3600.0, **wanted))
    ref = engine.running(max_retries=1)
    stall(engine, ref, steady)
    engine.wait(ref, "retrying")
    [found] = alerts(engine, stalled_training.CODE)
    assert found.evidence["evidence"]
    assert [done["cause"] for done in found.actions_taken] == ["stall"]


def test_a_rule_holds_for_its_time_and_acts_once(engine):
    ref = engine.running(max_retries=3)
    engine.executor.stubborn = True
    rule(engine, "loss > 10", length="0.2s", actions=["checkpoint-and-stop"])
    tell(engine, ref, "loss", 20.0)
    look(engine)
    assert not alerts(engine)
    until(lambda: (look(engine), alerts(engine))[1])
    for _ in range(3):
        look(engine)
    assert len(engine.executor.stops[f"{ref}.1"]) == 1
    [found] = alerts(engine)
    assert [done["action"] for done in found.actions_taken] == ["checkpoint-and-stop"]
    engine.finish(ref, 0, cause="cancelled")
    engine.wait(ref, "failed")
    look(engine)
    assert alerts(engine)[0].status == "open", "what was done is for a person to see"


def test_a_rule_of_a_user_is_for_that_users_jobs(engine):
    theirs, hers = engine.running(actor=ANN), engine.running(actor=BOB)
    rule(engine, "loss > 10", BOB, actions=["cancel"])
    for ref in (theirs, hers):
        tell(engine, ref, "loss", 20.0)
    look(engine)
    engine.wait(hers, "cancelled")
    assert engine.reason(hers) == ("user_cancelled", {"by": "rule:mine"})
    assert engine.status(theirs) == "running"


def test_a_rule_of_machines_needs_no_job(engine):
    rule(engine, "node.disk_free_gb < 10")
    sample = Sample("node.disk_free_gb", engine.clock(), 5.0)
    engine.parts.board.record_node(engine.node_id, [sample])
    look(engine)
    [found] = alerts(engine)
    assert (found.code, found.node_id, found.job_id) == ("rule", engine.node_id, None)


def test_a_rule_that_cannot_be_read_any_more_is_broken_and_says_why(engine):
    """As one written by another release: the others go on."""
    ref = engine.running()
    made = rule(engine, "loss > 10")
    good = engine.yard.rule_desk.create(Wish("good", "loss > 1"), ANN)
    bad = watching.rules.NewRule("mine", "loss >< 10", 0.0, made.level, made.actions)
    engine.store.write(lambda tx: tx.update_rule(made.id, bad))
    tell(engine, ref, "loss", 20.0)
    look(engine)
    assert "no value" in engine.yard.rule_desk.get("mine").broken
    assert [found.params["rule"] for found in alerts(engine)] == [good.name]
    engine.yard.rule_desk.change("mine", Wish(expression="loss > 5"), ANN)
    look(engine)
    assert engine.yard.rule_desk.get("mine").broken is None
    assert len(alerts(engine)) == 2


def test_a_rule_that_is_off_does_nothing(engine):
    ref = engine.running()
    rule(engine, "loss > 10", enabled=False)
    tell(engine, ref, "loss", 20.0)
    look(engine)
    assert not alerts(engine)
