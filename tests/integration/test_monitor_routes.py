"""A real server measures real jobs: numbers within wide margins."""

from __future__ import annotations

import re
import sys
import time

import pytest

from runyard.sdk.client import Client
from yards import RunningYard, until

BURN = "while True: pass"
HOLD = "import time; held = bytearray({mb} << 20); print('held', flush=True); time.sleep(600)"
FORKS = (
    "import os, time\n"
    "for _ in range(3):\n"
    "    if os.fork() == 0: time.sleep(600)\n"
    "print('forked', flush=True)\n"
    "time.sleep(600)\n"
)
WRITE = (
    "import os\n"
    "f = open('filled', 'wb')\n"
    "while True:\n"
    "    f.seek(0); f.write(bytes(4 << 20)); f.flush(); os.fsync(f.fileno())\n"
)


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    made = RunningYard(
        tmp_path_factory.mktemp("monitored"),
        max_concurrent=8,
        env={"RUNYARD_MONITORING_INTERVAL": "1"},
    ).start()
    yield made
    made.stop()


@pytest.fixture
def start(yard):
    made = []

    def begin(program, **fields):
        ref = yard.submit([sys.executable, "-c", program], grace_s=0, **fields)
        made.append(ref)
        yard.wait(ref, "running")
        return ref

    yield begin
    for ref in made:
        yard.cancel(ref)


def use_of(yard, ref):
    return yard.ask(f"/monitor/job/{ref}")["use"]


def test_a_job_that_burns_cpu(yard, start):
    """R14. On a busy machine it gets less than a core, but never more."""
    ref, idle = start(BURN, cpu_cores=1), start("import time; time.sleep(600)")
    found = until(
        lambda: 0.15 < ((use := use_of(yard, ref))["cpu_cores"] or 0) < 1.5 and use,
        words=lambda: use_of(yard, ref),
    )
    assert found["cpu_ratio"] == pytest.approx(found["cpu_cores"], abs=0.1)
    assert until(lambda: use_of(yard, idle)["cpu_cores"] is not None)
    until(lambda: use_of(yard, idle)["cpu_cores"] < 0.15)
    status = yard.ask("/monitor/status")
    assert {ref, idle} <= {job["job_id"] for job in status["running"]}
    [node] = status["nodes"]
    assert 0 < node["metrics"]["cpu_percent"] <= 100
    assert 0 < node["metrics"]["memory_percent"] <= 100


def test_a_job_that_holds_memory(yard, start):
    ref = start(HOLD.format(mb=200), memory_gb=1)
    found = until(
        lambda: (use := use_of(yard, ref))["memory_gb"] and use["memory_gb"] > 0.19 and use
    )
    assert found["memory_gb"] < 0.4
    assert 0.19 < found["memory_ratio"] < 0.4


def test_every_process_of_a_job_counts(yard, start):
    ref = start(FORKS)
    until(lambda: use_of(yard, ref)["processes"] == 4, words=lambda: use_of(yard, ref))


def test_a_job_that_writes(yard, start):
    """On a file system in memory nothing reaches a disk, and nothing is said to."""
    ref = start(WRITE)
    system = until(
        lambda: "system.write_mb_s" in (now := yard.ask(f"/monitor/job/{ref}")["system"]) and now
    )
    assert system["system.write_mb_s"]["value"] >= 0
    assert system["system.read_mb_s"]["value"] >= 0


def test_the_history_stays_after_the_end(yard, start):
    """R14."""
    ref = start(BURN)
    keys = "system.cpu_percent,system.rss_mb"
    path = f"/monitor/history?job={ref}&keys={keys}"
    until(lambda: len(yard.ask(path)["series"]["system.rss_mb"]["values"]) >= 4)
    yard.cancel(ref)
    yard.wait(ref, "cancelled")
    few = yard.ask(f"{path}&points=3")["series"]
    assert all(0 < len(one["values"]) <= 3 for one in few.values())
    assert few["system.rss_mb"]["sampled"] is True
    assert few["system.rss_mb"]["times"] == sorted(few["system.rss_mb"]["times"])
    ended = yard.ask(f"/monitor/job/{ref}")
    assert ended["use"] is None
    assert ended["system"]["system.rss_mb"]["value"] > 1


def test_the_history_of_the_machine(yard):
    since = time.time() - 3600
    path = f"/monitor/history?since={since}&keys=node.cpu_percent,node.disk_free_gb"
    found = until(lambda: (now := yard.ask(path)["series"])["node.cpu_percent"]["values"] and now)
    assert all(0 <= value <= 100 for value in found["node.cpu_percent"]["values"])
    assert found["node.disk_free_gb"]["values"][-1] > 0


def test_the_python_client(yard, start):
    """R22."""
    ref = start("import time; time.sleep(600)")
    with Client(yard.url, yard.key) as client:
        assert client.monitor_status()["counts"]["running"] >= 1
        until(lambda: client.monitor_job(ref)["use"]["processes"] == 1)
        series = client.monitor_history(job=ref, keys=["system.rss_mb"], points=5)
        assert set(series) == {"system.rss_mb"}
        assert "node.memory_percent" in client.monitor_history(points=1)


def test_figures_for_prometheus_from_a_real_server(yard, start):
    """R24."""
    start(BURN)

    def told():
        text = yard.call("GET", "/metrics", headers={"Authorization": ""}).data.decode()
        return re.search(r"\nrunyard_node_cpu_ratio [01]\.", text) and text

    text = until(told)
    assert "\nrunyard_store_write_seconds_count " in text
    assert 'runyard_jobs{status="running"}' in text
    away = yard.call(
        "GET", "/metrics", headers={"Authorization": "", "X-Forwarded-For": "10.0.0.9"}
    )
    assert away.status == 401
