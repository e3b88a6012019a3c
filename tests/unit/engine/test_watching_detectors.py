"""Every detector from what was measured to the alert that people see: the board is filled as the
collecting and reading loops fill it, and looked at again and again (R24)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from runyard.domain.monitoring.alert import AlertFilter
from runyard.domain.monitoring.series import Sample
from runyard.engine.watch import watching
from runyard.engine.watch.board import Progress
from runyard.settings import DETECTORS

EVERY_S = 20.0


class Watch:
    """A running job and the machine it is on, looked at every twenty seconds."""

    def __init__(self, engine, steady):
        self.engine, self._steady = engine, steady
        self.ref = engine.running()
        self._job = engine.job(self.ref)
        self._chance = random.Random(7)
        self._steps = 0

    def about(self, middle, share=0.01):
        """Nothing that is measured is ever quite the same."""
        return middle * (1 + share * self._chance.uniform(-1, 1))

    def job(self, name, value):
        sample = Sample(name, self.engine.clock(), value, self._steps)
        self.engine.parts.board.record(self._job.id, self._job.attempt_number, [sample])

    def node(self, name, value):
        sample = Sample(name, self.engine.clock(), value)
        self.engine.parts.board.record_node(self.engine.node_id, [sample])

    def steps(self, more):
        self._steps += more
        now = self.engine.clock()
        told = Progress(None, self._steps, None, None, None, None, "report", "training", now, now)
        self.engine.parts.board.set_progress(self._job.id, told)

    def look(self):
        self.engine.yard.runtime.watching.look()
        self.engine.clock.ahead += EVERY_S
        self._steady.now += EVERY_S

    def alerts(self):
        return self.engine.yard.alert_desk.list(AlertFilter(), 100, None).alerts


@dataclass(frozen=True)
class Case:
    code: str
    looks: int
    fill: Callable[[Watch, int, bool], None]  # at each look; with the fault or without
    series: str
    level: str = "warning"
    params: dict[str, object] = field(default_factory=dict)
    of_a_node: bool = False


def spike(watch, look, ill):
    watch.steps(5)
    watch.job("loss", watch.about(5.0 if ill and look >= 40 else 1.0))


def divergence(watch, look, ill):
    watch.steps(5)
    rising = 1 + 0.006 * max(0, look - 20) if ill else 1.0
    watch.job("loss", watch.about(rising))


def plateau(watch, look, ill):
    watch.steps(5)
    watch.job("loss", watch.about(2.0 if ill else 3.0 - look * 0.01))


def host_leak(watch, look, ill):
    watch.node("node.memory_percent", 90.0)
    watch.job("system.rss_mb", watch.about(1000.0 + (20.0 * look if ill else 0), 0.001))


def gpu_leak(watch, look, ill):
    used = watch.about(20_000.0 + (200.0 * look if ill else 0), 0.0005)
    watch.job("gpu.memory_mb", used)
    watch.job("gpu.memory_percent", 100 * used / 81_920)


def idle(watch, look, ill):
    watch.job("gpu.util", 0.0 if ill and look > 20 else watch.about(90.0))


def slow(watch, look, ill):
    watch.steps(8 if ill and look > 55 else 40 + look % 3)


def disk(watch, look, ill):
    watch.node("node.disk_free_gb", watch.about(100.0 - (0.8 * look if ill else 0), 0.0005))


def xid(watch, look, ill):
    watch.node("gpu.0.xid", 79.0 if ill and look == 3 else 45.0 if look == 4 else 0.0)


def ecc(watch, look, ill):
    watch.node("gpu.1.ecc_errors", 4.0 if ill and look > 2 else 3.0)


def heat(watch, look, ill):
    watch.node("gpu.1.temperature", 88.0)
    watch.node("gpu.1.throttled", float(ill or look % 5 == 0))


CASES = [
    Case("loss_spike", 43, spike, "loss", params={"metric": "loss"}),
    Case("loss_divergence", 120, divergence, "loss", "error", {"metric": "loss"}),
    Case("loss_plateau", 125, plateau, "loss", params={"metric": "loss"}),
    Case("memory_leak", 100, host_leak, "system.rss_mb", params={"kind": "host"}),
    Case(
        "memory_leak", 100, gpu_leak, "gpu.memory_mb", params={"kind": "gpu", "limit_mb": 81_920}
    ),
    Case("idle_gpu", 70, idle, "gpu.util", params={"seconds": 600}),
    Case("slow_down", 80, slow, "steps_per_sec"),
    Case("disk_full", 60, disk, "node.disk_free_gb", "error", of_a_node=True),
    Case("gpu_trouble", 6, xid, "gpu.0.xid", "critical", {"gpu": 0, "xid": 79}, True),
    Case("gpu_trouble", 6, ecc, "gpu.1.ecc_errors", "error", {"gpu": 1, "errors": 1}, True),
    Case("gpu_trouble", 20, heat, "gpu.1.throttled", params={"kind": "throttled"}, of_a_node=True),
]
NAMES = [f"{case.code}-{case.fill.__name__}" for case in CASES]


@pytest.fixture
def watch(make_engine, monkeypatch):
    def make(**settings):
        engine = make_engine(monitoring_interval=3600.0, stall_min_s=600.0, **settings)
        engine.yard.runtime.watching._loop.stop()  # only this test looks
        steady = SimpleNamespace(now=1000.0)
        monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: steady.now))
        return Watch(engine, steady)

    return make


def run(watch, case, *, ill):
    for look in range(case.looks):
        case.fill(watch, look, ill)
        watch.look()
    return watch.alerts()


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_planted_fault_becomes_one_alert(watch, case):
    watch = watch()
    [found] = run(watch, case, ill=True)
    assert (found.code, found.level.value, found.status.value) == (case.code, case.level, "open")
    assert {name: found.params[name] for name in case.params} == case.params
    shown = found.evidence["series"][case.series]
    assert len(shown["values"]) == len(shown["times"]) > 0
    health = watch.engine.parts.board.health(watch.engine.job(watch.ref).id)
    if case.of_a_node:
        assert (found.node_id, found.job_id) == (watch.engine.node_id, None)
        assert health.code is None
    else:
        assert (found.job_ref, found.attempt_id) == (watch.ref, f"{watch.ref}.1")
        assert (health.level, health.code) == (case.level, case.code)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_same_without_the_fault_is_silent(watch, case):
    assert not run(watch(), case, ill=False)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_and_so_is_a_detector_that_is_off(watch, case):
    assert not run(watch(detectors_off=(case.code,)), case, ill=True)


def test_no_detector_is_left_out():
    elsewhere = {"stalled_training", "not_finite"}  # test_watching_loop.py
    assert {case.code for case in CASES} | elsewhere == set(DETECTORS)
