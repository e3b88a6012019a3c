"""A GPU goes to the next job when the memory of the last one is back, and not before."""

from dataclasses import replace

import pytest
from watched_store import WatchedStore

from engine_yard import ANN
from runyard.domain import errors
from runyard.domain.monitoring.alert import AlertFilter, AlertStatus
from runyard.engine.end import gpu_return
from runyard.engine.node import machine
from runyard.executors.base import News, NewsKind
from runyard.probes.base import GpuProcess
from scripted_machine import ScriptedMachine
from yards import until

GPU = "GPU-0"


@pytest.fixture
def one_gpu(make_engine):
    return make_engine(machine=ScriptedMachine(gpu_count=1), wrap=WatchedStore)


def grants(engine):
    return [view["attempt_id"] for gpu in engine.yard.gpus() for view in gpu.jobs]


def looked_again(engine, count=3):
    """Until the probe has been asked so many times more."""
    asked = engine.machine.asked
    until(lambda: engine.machine.asked >= asked + count)


def test_the_next_job_waits_for_the_memory(one_gpu):
    """R2, R33: the process is gone, its memory is not yet; then the receipt tells both."""
    engine = one_gpu
    engine.machine.used[GPU] = 100
    first = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 40_000
    following = engine.submit(gpu_count=1)
    engine.finish(first)
    looked_again(engine)
    assert grants(engine) == [f"{first}.1"]
    assert (engine.status(first), engine.status(following)) == ("running", "pending")
    assert engine.reason(following)[0] == "not_enough"
    engine.machine.used[GPU] = 120
    engine.wait(first, "completed")
    engine.wait(following, "running")
    assert grants(engine) == [f"{following}.1"]
    assert engine.yard.receipt(first)["gpus"] == [
        {"index": 0, "memory_before_mb": 40_000, "memory_after_mb": 120}
    ]


def test_a_cancel_waits_for_the_memory_too(one_gpu):
    """R2: cancelled is not shown while the GPU is not back."""
    engine = one_gpu
    ref = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 40_000
    engine.yard.cancel(ref, ANN)
    looked_again(engine)
    assert engine.status(ref) == "cancelling"
    engine.machine.used[GPU] = 0
    engine.wait(ref, "cancelled")
    [gpu] = engine.yard.receipt(ref)["gpus"]
    assert (gpu["memory_before_mb"], gpu["memory_after_mb"]) == (40_000, 0)


def test_a_cpu_job_does_not_wait_for_it(one_gpu):
    """R52"""
    engine = one_gpu
    first = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 40_000
    engine.finish(first)
    other = engine.running()
    engine.finish(other)
    engine.wait(other, "completed")
    assert engine.status(first) == "running"
    assert engine.yard.receipt(other)["gpus"] == []


def test_a_process_of_the_attempt_that_is_still_there(one_gpu):
    """R2: whatever the memory says; also after a restart."""
    engine = one_gpu
    ref = engine.running(gpu_count=1)
    engine.machine.tags[4711] = engine.attempts(ref)[0].tag
    engine.machine.on_gpu[GPU] = [GpuProcess(4711, 10, "ann", "python")]
    engine.finish(ref)
    looked_again(engine)
    assert engine.status(ref) == "running"
    engine.machine.used[GPU] = 7
    engine.restart()
    looked_again(engine)
    assert grants(engine) == [f"{ref}.1"]
    engine.machine.on_gpu.clear()
    engine.wait(ref, "completed")
    [gpu] = engine.yard.receipt(ref)["gpus"]
    assert (gpu["index"], gpu["memory_before_mb"]) == (0, 7)


def test_memory_under_the_name_of_a_dead_process_is_waited_for(one_gpu):
    """R2: a worker forked by the job holds it, and the driver names the worker's dead parent."""
    engine = one_gpu
    ref = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 31_000
    engine.machine.on_gpu[GPU] = [GpuProcess(4_194_000, 31_000, alive=False)]
    engine.finish(ref)
    looked_again(engine)
    assert engine.status(ref) == "running"
    engine.machine.used[GPU] = 0
    engine.wait(ref, "completed")


def test_a_restart_does_not_forget_what_was_used_before(one_gpu):
    """R2, R41: a little more than before is still waited for; the note of it goes at the end."""
    engine = one_gpu
    engine.machine.used[GPU] = 100
    ref = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 900
    engine.restart()
    engine.finish(ref)
    looked_again(engine)
    assert (engine.status(ref), grants(engine)) == ("running", [f"{ref}.1"])
    engine.machine.used[GPU] = 100
    engine.wait(ref, "completed")
    until(lambda: not kept(engine))


def kept(engine):
    with engine.store.read() as reader:
        return reader.flags("gpu_before:")


def test_notes_of_attempts_that_ended_are_removed_after_a_restart(one_gpu):
    engine = one_gpu
    ref = engine.running(gpu_count=1)
    engine.store.write(lambda tx: tx.set_flag("gpu_before:gone.1", "{}"))
    engine.restart()
    until(lambda: set(kept(engine)) == {f"gpu_before:{ref}.1"}, words=lambda: kept(engine))


def test_without_a_note_memory_is_waited_for_but_not_for_ever(one_gpu, monkeypatch):
    """R2: of an attempt that an earlier release started."""
    engine = one_gpu
    ref = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 40_000
    engine.store.write(lambda tx: tx.set_flag(f"gpu_before:{ref}.1", None))
    engine.restart()
    engine.finish(ref)
    looked_again(engine)
    assert engine.status(ref) == "running"
    monkeypatch.setattr(gpu_return, "_UNKNOWN_PATIENCE_S", 0.0)
    engine.wait(ref, "completed")


def test_memory_of_others_is_not_waited_for(one_gpu):
    """R33: a stranger came meanwhile: ours is gone, theirs is theirs, and they are named."""
    engine = one_gpu
    ref = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 40_000
    engine.machine.on_gpu[GPU] = [GpuProcess(99, 40_000, "eve", "game")]
    engine.finish(ref)
    engine.wait(ref, "completed")
    until(lambda: [h["user"] for gpu in engine.yard.gpus() for h in gpu.holders] == ["eve"])


def test_who_was_quicker_than_the_next_job_keeps_the_gpu(one_gpu, monkeypatch):
    """R33: a stranger waited for the same GPU; that it was free a moment ago does not count."""
    monkeypatch.setattr(machine, "GPU_FRESH_S", 600.0)
    engine = one_gpu
    first = engine.running(gpu_count=1)
    following = engine.submit(gpu_count=1)
    engine.machine.on_gpu[GPU] = [GpuProcess(99, 40_000, "eve", "game")]
    engine.finish(first)
    engine.wait(first, "completed")
    until(lambda: engine.reason(following)[0] == "gpus_held_elsewhere")
    assert engine.status(following) == "pending"


def test_an_error_while_recording_is_made_good(one_gpu):
    """R41: by the next reconciling, and with all that was known."""
    engine = one_gpu
    engine.machine.used[GPU] = 100
    ref = engine.running(gpu_count=1)
    engine.machine.used[GPU] = 40_000
    following = engine.submit(gpu_count=1)
    engine.finish(ref)
    looked_again(engine)
    failed = []

    def once(tx):
        if not failed and tx.attempt(f"{ref}.1").status == "ended":
            failed.append(True)
            raise errors.Unavailable("The database went away.")

    engine.store.after = once
    engine.machine.used[GPU] = 100
    until(lambda: failed)
    assert grants(engine) == [f"{ref}.1"]
    assert engine.status(following) == "pending"

    def looked():
        engine.look()
        return engine.status(ref) == "completed"

    until(looked)
    engine.wait(following, "running")
    assert engine.yard.receipt(ref)["gpus"] == [
        {"index": 0, "memory_before_mb": 40_000, "memory_after_mb": 100}
    ]


def test_every_gpu_of_an_attempt_is_told(make_engine):
    """R2: each with what was used before and after."""
    engine = make_engine(machine=ScriptedMachine(gpu_count=2))
    engine.machine.used = {"GPU-0": 10, "GPU-1": 20}
    ref = engine.running(gpu_count=2)
    engine.machine.used = {"GPU-0": 10, "GPU-1": 40_000}
    engine.finish(ref)
    looked_again(engine)
    assert engine.status(ref) == "running", "one is back, the other is not"
    engine.machine.used = {"GPU-0": 11, "GPU-1": 21}
    engine.wait(ref, "completed")
    assert sorted(engine.yard.receipt(ref)["gpus"], key=lambda gpu: gpu["index"]) == [
        {"index": 0, "memory_before_mb": 10, "memory_after_mb": 11},
        {"index": 1, "memory_before_mb": 40_000, "memory_after_mb": 21},
    ]


def test_memory_that_is_held_on_nodes_of_an_executor(make_engine):
    """R2: its executor reads those, and waits with the end; the job says what for, and after a
    while an alert does, which closes with the end."""
    engine = make_engine()
    ref = engine.running()
    engine.executor.stubborn = True
    engine.yard.cancel(ref, ANN)
    held = {"index": 3, "uuid": "GPU-x", "used_mb": 40_000, "node": "node-7"}
    news = News(f"{ref}.1", NewsKind.GPUS_HELD, 0.0, gpus=(held,), waited_s=0.6)
    engine.executor.tell(news)
    params = engine.wait_reason(ref, "waiting_for_gpu_memory")
    assert (params["gpus"], params["by"]) == ([3], "ann")
    for _ in range(2):
        engine.executor.tell(replace(news, waited_s=6.0))
    [alert] = until(lambda: _held_alerts(engine))
    assert alert.params["gpus"] == [{**held, "holders": []}]
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    until(lambda: _held_alerts(engine)[0].status is AlertStatus.CLOSED)
    engine.executor.tell(replace(news, waited_s=8.0))  # late news of what has ended
    engine.wait(engine.running(), "running")
    assert len(_held_alerts(engine)) == 1


def _held_alerts(engine):
    return list(
        engine.yard.alert_desk.list(AlertFilter(codes=("gpu_memory_held",)), 9, None).alerts
    )


def test_a_shared_gpu(one_gpu):
    """R33: only what belongs to the attempt must be gone; its neighbour goes on."""
    engine = one_gpu
    first, second = engine.running(gpu_count=0.5), engine.running(gpu_count=0.5)
    tags = {ref: engine.attempts(ref)[0].tag for ref in (first, second)}
    engine.machine.tags = {1: tags[first], 2: tags[second]}
    engine.machine.on_gpu[GPU] = [GpuProcess(1, 5000), GpuProcess(2, 5000)]
    engine.machine.used[GPU] = 10_000
    engine.finish(first)
    looked_again(engine)
    assert engine.status(first) == "running"
    engine.machine.on_gpu[GPU] = [GpuProcess(2, 5000)]
    engine.wait(first, "completed")
    assert engine.status(second) == "running"
    engine.wait(engine.submit(gpu_count=0.5), "running")
