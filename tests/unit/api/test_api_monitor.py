"""The monitor's answers: their shapes, what they are made of, and what they refuse."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest
from served import until

from runyard.domain.monitoring.alert import AlertLevel, NewAlert
from runyard.domain.monitoring.series import Sample
from runyard.executors.base import Usage
from runyard.wire import monitor
from runyard.wire.metric_answers import MetricsAnswer


def record(served, job, **values):
    at = time.time()
    samples = [Sample(name.replace("__", "."), at, value, 7) for name, value in values.items()]
    served.parts.board.record(served.job(job)["id"], 1, samples)


def test_the_whole(make_served):
    """R14, R23."""
    served = make_served()
    job = served.running(cpu_cores=2, memory_gb=4)
    record(served, job, loss=1.5, system__cpu_percent=150.0, system__rss_mb=1024.0)
    at = time.time()
    board = served.parts.board
    board.record_node("node-1", [Sample("node.cpu_percent", at, 12.34567)])
    answer = served.api("GET", "/monitor/status")
    assert answer.status == 200
    found = answer.body
    monitor.MonitorStatusAnswer.model_validate(found, extra="forbid")
    assert found["counts"]["running"] == 1
    [node] = found["nodes"]
    assert node["metrics"]["cpu_percent"] == 12.346
    [running] = found["running"]
    assert running["job_id"] == job
    assert running["metrics"]["loss"] == 1.5
    assert running["use"]["cpu_cores"] == 1.5
    assert running["use"]["cpu_ratio"] == 0.75
    assert running["use"]["memory_gb"] == 1.0
    assert running["use"]["memory_ratio"] == 0.25
    assert found["alerts"] == {"open": 0, "by_level": {"warning": 0, "error": 0, "critical": 0}}


def test_alerts_that_are_not_closed_are_counted(make_served):
    served = make_served()
    desk = served.yard.alert_desk
    one = desk.open(NewAlert("a", AlertLevel.ERROR, "stalled", {}))
    desk.open(NewAlert("b", AlertLevel.WARNING, "idle_gpu", {}))
    served.api("POST", f"/alerts/{one.id}/acknowledge")
    alerts = served.api("GET", "/monitor/status").body["alerts"]
    assert alerts == {"open": 2, "by_level": {"warning": 1, "error": 1, "critical": 0}}
    served.api("POST", f"/alerts/{one.id}/close")
    assert served.api("GET", "/monitor/status").body["alerts"]["open"] == 1


def test_one_job(make_served):
    served = make_served()
    job = served.running()
    record(served, job, loss=math.nan, learning_rate=0.1, system__rss_mb=10.0, gpu__util=55.0)
    answer = served.api("GET", f"/monitor/job/{job}")
    found = answer.body
    monitor.JobNowAnswer.model_validate(found, extra="forbid")
    assert found["metrics"]["loss"]["value"] == "NaN"
    assert found["metrics"]["learning_rate"] == {
        "value": 0.1,
        "step": 7,
        "at": found["metrics"]["learning_rate"]["at"],
    }
    assert set(found["system"]) == {"system.rss_mb", "gpu.util"}
    assert found["use"]["gpu_util"] == 55.0
    assert found["use"]["cpu_cores"] is None
    assert found["health"]["level"] in ("ok", "unknown")


def test_one_job_that_waits(make_served):
    served = make_served()
    served.api("POST", "/system/stop-queue")
    found = served.api("GET", f"/monitor/job/{served.submit()}").body
    monitor.JobNowAnswer.model_validate(found, extra="forbid")
    assert (found["status"], found["use"], found["metrics"]) == ("pending", None, {})


def test_a_job_that_ended_is_told_from_the_history(make_served):
    served = make_served()
    job = served.running()
    record(served, job, loss=0.25, system__rss_mb=10.0)
    served.yard.runtime.metric_history.flush()
    served.finish(job)
    served.parts.board.forget(served.job(job)["id"])
    found = served.api("GET", f"/monitor/job/{job}").body
    assert found["metrics"]["loss"]["value"] == 0.25
    assert found["use"] is None


def test_the_smaller_of_both_memories_counts_while_it_is_new(make_served):
    served = make_served()
    job = served.running(memory_gb=1)
    record(served, job, system__rss_mb=900.0, system__pss_mb=512.0)
    assert served.api("GET", f"/monitor/job/{job}").body["use"]["memory_gb"] == 0.5


def test_history_of_a_job_and_of_the_node(make_served):
    """R14."""
    served = make_served()
    job = served.running()
    number, board = served.job(job)["id"], served.parts.board
    at = time.time()
    for step in range(500):
        board.record(number, 1, [Sample("loss", at + step, 500.0 - step, step)])
    board.record(number, 1, [Sample("lr", at, 0.1, 0)])
    board.record_node("node-1", [Sample("node.cpu_percent", at + n, float(n)) for n in range(50)])
    whole = served.api("GET", "/monitor/history", job=job, points=20).body
    MetricsAnswer.model_validate(whole, extra="forbid")
    assert {"loss", "lr"} <= set(whole["series"])
    loss = whole["series"]["loss"]
    assert len(loss["values"]) <= 20
    assert (loss["values"][0], loss["values"][-1], loss["sampled"]) == (500.0, 1.0, True)
    part = served.api(
        "GET", "/monitor/history", job=job, keys="loss", since=at + 490, until=at + 494
    ).body["series"]
    assert set(part) == {"loss"}
    assert part["loss"]["steps"] == [490, 491, 492, 493, 494]
    for query in ({}, {"node": "node-1"}, {"node": served.yard.nodes()[0].name}):
        found = served.api("GET", "/monitor/history", keys="node.cpu_percent", **query).body
        assert len(found["series"]["node.cpu_percent"]["values"]) == 50


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"job": "job-000000000000"}, 404),
        ({"job": "../../etc"}, 404),
        ({"node": "nowhere"}, 404),
        ({"job": "1", "node": "node-1"}, 422),
        ({"points": "0"}, 422),
        ({"points": "10001"}, 422),
        ({"since": "yesterday"}, 422),
    ],
)
def test_history_refuses(served, query, status):
    answer = served.api("GET", "/monitor/history", **query)
    assert answer.status == status
    assert answer.code


def test_an_unknown_job(served):
    assert served.api("GET", "/monitor/job/job-000000000000").status == 404


def test_a_viewer_may_look_and_a_stranger_may_not(served):
    for path in ("/monitor/status", "/monitor/history"):
        assert served.api("GET", path, key=served.viewer).status == 200
        assert served.api("GET", path, key="").status == 401


def test_who_looks_is_shown_newer_figures(make_served):
    served = make_served(monitoring_interval=3600.0)
    job = served.running()
    served.executor.usages[f"{job}.1"] = Usage(1.0, 0.0, 64.0, (1,))

    def measured():
        use = served.api("GET", f"/monitor/job/{job}").body["use"]
        return use["processes"] == 1 and use

    assert until(measured)["memory_gb"] == 0.0625


def test_nodes_of_other_servers_are_told_from_the_store(make_served):
    served = make_served()
    own = served.yard.nodes()[0]
    now = served.store.now()

    def others(tx):
        tx.put_node(replace(own, node_id="node-2", name="second", heartbeat_at=now))
        tx.put_node(replace(own, node_id="node-3", name="silent", heartbeat_at=now - 3600))
        for name in ("node-2", "node-3"):
            tx.insert_node_points(name, [Sample("node.cpu_percent", now - 1, 77.0)])

    served.store.write(others)
    nodes = {node["name"]: node for node in served.api("GET", "/monitor/status").body["nodes"]}
    assert nodes["second"]["metrics"] == {"cpu_percent": 77.0}
    assert nodes["silent"]["metrics"] == {}
    assert nodes["silent"]["at"] is None
