"""After a fault on a GPU the next attempt is placed on another one, or waits for it."""

import pytest

from engine_yard import EngineYard
from failing_attempts import fail, next_attempt
from scripted_machine import ScriptedMachine

FAULT = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 88, in <module>\n'
    "RuntimeError: CUDA error: an illegal memory access was encountered\n"
)
BROKEN = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"


def gpus_of(engine, ref):
    return [[grant.uuid for grant in one.gpus] for one in engine.attempts(ref)]


@pytest.fixture
def make_engine(tmp_path):
    opened = []

    def make(gpu_count):
        machine = ScriptedMachine(gpu_count=gpu_count)
        opened.append(EngineYard(tmp_path, machine=machine, starvation_s=1e6).open())
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_a_fault_moves_it_to_another_gpu(make_engine):
    """R20."""
    engine = make_engine(2)
    ref = engine.running(gpu_count=1, max_retries=3)
    fail(engine, ref, FAULT)
    next_attempt(engine, ref, 2)
    assert gpus_of(engine, ref) == [["GPU-0"], ["GPU-1"]]
    assert engine.attempts(ref)[0].plan["avoid"] == ["GPU-0"]


def test_it_waits_for_the_other_one(make_engine):
    engine = make_engine(2)
    ref = engine.running(gpu_count=1, max_retries=3)
    other = engine.running(gpu_count=1)
    fail(engine, ref, FAULT)
    engine.let_time_pass(lambda: engine.reason(ref)[0] == "gpus_avoided")
    assert engine.reason(ref)[1]["gpus"] == [0]
    assert engine.status(ref) == "retrying"
    engine.finish(other, 0)
    next_attempt(engine, ref, 2)
    assert gpus_of(engine, ref)[1] == ["GPU-1"]


def test_the_only_one_is_tried_again(make_engine):
    engine = make_engine(1)
    ref = engine.running(gpu_count=1, max_retries=3)
    fail(engine, ref, FAULT)
    next_attempt(engine, ref, 2)
    assert gpus_of(engine, ref) == [["GPU-0"], ["GPU-0"]]


def test_broken_hardware_is_fenced_and_never_tried_again(make_engine):
    engine = make_engine(1)
    ref = engine.running(gpu_count=1, max_retries=3)
    fail(engine, ref, BROKEN)
    engine.let_time_pass(lambda: engine.reason(ref)[0] == "gpus_avoided")
    assert engine.reason(ref)[1] == {"gpus": [0], "until": None, "fenced": [0]}
    assert len(engine.attempts(ref)) == 1
