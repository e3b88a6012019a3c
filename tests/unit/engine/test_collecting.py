"""The loop that measures: what it tells the board, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine_yard import NEVER_S
from runyard.engine.watch import watchers
from runyard.engine.watch.collecting import FEW, Collecting
from runyard.engine.watch.watchers import Watchers
from runyard.executors.base import Usage
from runyard.probes.readings import GpuReading, NodeReading
from runyard.stores.base_metrics import EVERYTHING
from scripted_machine import ScriptedMachine
from yards import until

NODE = NodeReading(
    cpu_percent=None,
    memory_percent=40.0,
    memory_used_mb=1000.0,
    disk_percent=70.0,
    disk_free_gb=12.5,
    disk_read_mb_s=None,
    disk_write_mb_s=3.0,
    net_in_mb_s=0.5,
    net_out_mb_s=0.25,
)


def gpu(index, **values):
    reading = GpuReading(index, f"GPU-{index}", 80.0, 8192.0, 10.0, 60.0, 300.0, 0, (), False)
    return replace(reading, **values)


class Meters:
    """Both meters, as a test says."""

    def __init__(self):
        self.node = NODE
        self.gpus = []
        self.memory = {}
        self.asked = []

    def read(self):
        return self.node

    def readings(self):
        return list(self.gpus)

    def memory_by_process(self, uuid):
        self.asked.append(uuid)
        return self.memory.get(uuid, {})


@pytest.fixture
def meters():
    return Meters()


@pytest.fixture
def collect(make_engine, meters):
    def make(**options):
        engine = make_engine(monitoring_interval=NEVER_S, **options)
        parts = replace(engine.parts, node_meter=meters, gpu_meter=meters)
        return engine, Collecting(parts)

    return make


def use(engine, ref, at, **values):
    attempt_id = engine.job(ref).attempt_id()
    usage = {"cpu_s": 0.0, "rss_mb": 100.0, "pids": (11, 12), **values}
    engine.executor.usages[attempt_id] = Usage(at=at, **usage)


def latest(engine, ref):
    found = engine.parts.board.latest(engine.job(ref).id)
    return {name: sample.value for name, sample in found.items()}


def test_the_node(collect):
    """R14."""
    engine, collecting = collect()
    collecting.measure()
    found = engine.parts.board.node_latest(engine.node_id)
    told = {name: sample.value for name, sample in found.items()}
    assert told == {
        "node.memory_percent": 40.0,
        "node.memory_used_mb": 1000.0,
        "node.disk_percent": 70.0,
        "node.disk_free_gb": 12.5,
        "node.disk_write_mb_s": 3.0,
        "node.net_in_mb_s": 0.5,
        "node.net_out_mb_s": 0.25,
    }


def test_gpus_of_the_node(collect, meters):
    engine, collecting = collect()
    meters.gpus = [gpu(0, throttled=True, ecc_errors=None), gpu(1, xids=(48, 45, 45))]
    collecting.measure()
    found = engine.parts.board.node_latest(engine.node_id)
    assert found["gpu.0.util"].value == 80.0
    assert found["gpu.0.throttled"].value == 1.0
    assert "gpu.0.ecc_errors" not in found
    assert found["gpu.0.xid"].value == 0.0
    told = engine.parts.board.node_window(engine.node_id, "gpu.1.xid")
    assert [sample.value for sample in told] == [48.0, 45.0]
    assert told[0].at < told[1].at
    assert engine.parts.tallies.xids.all() == {("1", "48"): 1.0, ("1", "45"): 2.0}


def test_rates_of_an_attempt_come_from_two_looks(collect):
    engine, collecting = collect()
    ref = engine.running()
    use(engine, ref, 50.0, cpu_s=10.0, read_bytes=0, write_bytes=0)
    collecting.measure()
    assert latest(engine, ref) == {"system.rss_mb": 100.0, "system.processes": 2.0}
    use(
        engine,
        ref,
        60.0,
        cpu_s=25.0,
        rss_mb=300.0,
        pss_mb=200.0,
        read_bytes=10 << 20,
        write_bytes=20 << 20,
    )
    collecting.measure()
    assert latest(engine, ref) == {
        "system.rss_mb": 300.0,
        "system.pss_mb": 200.0,
        "system.processes": 2.0,
        "system.cpu_percent": 150.0,
        "system.read_mb_s": 1.0,
        "system.write_mb_s": 2.0,
    }


def test_counters_that_go_back_are_no_negative_use(collect):
    engine, collecting = collect()
    ref = engine.running()
    for at, cpu_s in ((50.0, 10.0), (60.0, 5.0)):
        use(engine, ref, at, cpu_s=cpu_s)
        collecting.measure()
    assert latest(engine, ref)["system.cpu_percent"] == 0.0


def test_gpus_of_an_attempt(collect, meters):
    engine, collecting = collect(machine=ScriptedMachine(2))
    ref = engine.running(gpu_count=2)
    meters.gpus = [gpu(0), gpu(1, util=40.0)]
    meters.memory = {"GPU-0": {11: 4096, 99: 2048}, "GPU-1": {12: 8192}}
    use(engine, ref, 50.0)
    collecting.measure()
    told = latest(engine, ref)
    assert (told["gpu.0.util"], told["gpu.1.util"], told["gpu.util"]) == (80.0, 40.0, 60.0)
    assert (told["gpu.0.memory_mb"], told["gpu.1.memory_mb"]) == (4096.0, 8192.0)
    assert told["gpu.0.memory_percent"] == pytest.approx(5.0)
    assert told["gpu.temperature"] == 60.0
    assert sorted(meters.asked) == ["GPU-0", "GPU-1"]


def test_a_driver_that_names_no_processes(collect, meters):
    """The whole GPU is the attempt's: what is used there is its own."""
    engine, collecting = collect(machine=ScriptedMachine(1))
    ref = engine.running(gpu_count=1)
    meters.gpus = [gpu(0)]
    use(engine, ref, 50.0)
    collecting.measure()
    assert latest(engine, ref)["gpu.memory_mb"] == 8192.0


def test_an_attempt_that_ended_is_forgotten(collect):
    engine, collecting = collect()
    ref = engine.running()
    use(engine, ref, 50.0)
    collecting.measure()
    engine.finish(ref)
    engine.wait(ref, "completed")
    collecting.measure()
    assert collecting._usage == {}


def test_only_those_looked_at_are_measured_in_between(collect):
    engine, collecting = collect(max_concurrent=FEW + 2)
    refs = [engine.running() for _ in range(FEW + 1)]
    for ref in refs:
        use(engine, ref, 50.0)
    engine.parts.board.watchers.watch(watchers.of_job(engine.job(refs[3]).id), 60.0)
    collecting.measure(everything=False)
    assert [bool(latest(engine, ref)) for ref in refs].count(True) == 1
    assert latest(engine, refs[3])
    collecting.measure()
    assert all(latest(engine, ref) for ref in refs)


def test_few_are_measured_for_whoever_looks_at_the_whole(collect):
    engine, collecting = collect()
    ref = engine.running()
    use(engine, ref, 50.0)
    collecting.measure(everything=False)
    assert latest(engine, ref)


def test_asking_for_a_job_or_its_metrics_is_looking(collect):
    """What they show is measured and read more often then; a list is nobody who looks."""
    engine, _ = collect()
    ref, marks = engine.running(), engine.parts.board.watchers
    for ask in (
        lambda: engine.yard.job(ref),
        lambda: engine.yard.metrics(ref, None, 10, EVERYTHING),
    ):
        marks._until.clear()
        engine.refs()
        assert not marks.anybody()
        ask()
        assert marks.is_watched(watchers.SYSTEM)


def test_more_often_while_somebody_looks(collect):
    engine, collecting = collect()
    engine.parts.board.watchers.watch(watchers.SYSTEM, 60.0)
    collecting.start()
    try:
        board = engine.parts.board
        name = "node.memory_percent"
        until(lambda: len(board.node_window(engine.node_id, name)) >= 3)
    finally:
        collecting.stop()


def test_marks_run_out():
    now = 100.0
    marks = Watchers(clock=lambda: now)
    assert not marks.anybody()
    marks.watch("job:1", 10.0)
    marks.watch("job:1", 2.0)  # a shorter one takes nothing away
    now += 9.0
    assert marks.is_watched("job:1")
    assert not marks.is_watched("job:2")
    assert marks.anybody()
    now += 1.0
    assert not marks.is_watched("job:1")
    assert not marks.anybody()
