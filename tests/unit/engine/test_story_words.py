"""Words of the log that a real server writes only with a GPU, or when the kernel refuses."""

import pytest
from loguru import logger

from engine_yard import ANN
from scripted_machine import ScriptedMachine
from yards import until

FROZEN = {"pid": 4711, "state": "D", "name": "train", "where": "nfs_wait", "user": "ann"}


@pytest.fixture
def told():
    """(level, job, attempt, words) of each line."""
    heard = []

    def hear(message):
        record = message.record
        extra = record["extra"]
        heard.append((record["level"].name, extra["job"], extra["attempt"], record["message"]))

    sink = logger.add(hear, level="INFO")
    yield heard
    logger.remove(sink)


def lines(told, words):
    return [line for line in told if line[3].startswith(words)]


def test_gpu_memory_released(make_engine, told):
    """R9, R2"""
    engine = make_engine(machine=ScriptedMachine(gpu_count=1))
    ref = engine.running(gpu_count=1)
    engine.machine.used["GPU-0"] = 40_000
    engine.yard.cancel(ref, ANN)
    until(lambda: engine.status(ref) == "cancelling")
    engine.machine.used["GPU-0"] = 0
    engine.wait(ref, "cancelled")
    [line] = lines(told, "GPU memory released")
    assert line[:3] == ("INFO", ref, f"{ref}.1")
    assert "'memory_before_mb': 40000, 'memory_after_mb': 0" in line[3]


def test_cannot_be_killed_and_swept_again(engine, told):
    """R9, R6: critical, with the ids and the holder."""
    ref = engine.running()
    engine.executor.stubborn = True
    engine.yard.cancel(ref, ANN)
    engine.executor.cannot_kill(f"{ref}.1", FROZEN)
    engine.wait_reason(ref, "stuck")
    engine.clock.ahead += 400
    engine.yard.runtime._stale_cancels.look()
    for words in ("cannot be killed: ", "swept again: ", "alert opened: cancel_stale"):
        line = lines(told, words)[0]
        assert line[:3] == ("CRITICAL", ref, f"{ref}.1")
        assert "4711" in line[3]
        assert "nfs_wait" in line[3]


def test_where_a_cancel_met_the_job(engine, told):
    """R9: before or after it was loaded is told apart."""
    ref = engine.running()
    engine.yard.cancel(ref, ANN)
    [line] = lines(told, "cancel asked by ann")
    assert line[3].endswith("while running")


@pytest.mark.parametrize(
    ("terms", "words"),
    [("cancel", "not renewed within 0.1 s, the job is cancelled"), ("keep", "the job goes on")],
)
def test_lease_ran_out(engine, told, terms, words):
    """R9, R56"""
    ref = engine.submit(lease_s=0.1, on_lease_lost=terms)
    [line] = until(lambda: lines(told, "lease ran out"))
    assert line[:2] == ("WARNING", ref)
    assert words in line[3]
