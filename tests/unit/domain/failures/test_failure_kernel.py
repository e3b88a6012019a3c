"""Whom the kernel killed: only what is about the attempt is its cause."""

from __future__ import annotations

from runyard.domain.failures.categories import Category
from runyard.domain.failures.classify import classify
from runyard.domain.failures.evidence import (
    Evidence,
    GpuFact,
    HostFacts,
    RankLog,
    lines_of,
)

KILL = "Out of memory: Killed process 4711 (python3) total-vm:81231232kB, anon-rss:63012344kB"
TYPE_ERROR = """Traceback (most recent call last):
  File "/w/train.py", line 3, in <module>
    f(1, 2)
TypeError: f() takes 1 positional argument but 2 were given"""


def judged(text="", kernel=(KILL,), gpus=(), **known):
    known = {"exit_code": 1, **known}
    host = HostFacts(kernel_lines=kernel, gpus=gpus)
    return classify(Evidence(logs=(RankLog(tail=lines_of(text)),), host=host, **known))


def test_a_process_of_the_attempt():
    """R18: a kernel's kill is told from somebody's kill -9."""
    found = judged("step 1", exit_code=None, signal=9, own_pids=frozenset({4711, 4712}))
    assert found.category is Category.HOST_OOM
    assert found.root.number == 0
    assert "4711" in found.root.text


def test_a_process_of_somebody_else_is_no_cause():
    found = judged("step 1", exit_code=None, signal=9, own_pids=frozenset({99}))
    assert found.category is Category.UNKNOWN_KILL
    assert judged(TYPE_ERROR, own_pids=frozenset({99})).category is Category.CODE


def test_a_child_nobody_saw_below_a_shell():
    found = judged("Killed", exit_code=137, own_pids=frozenset({99}))
    assert found.category is Category.HOST_OOM


def test_without_known_processes_something_must_have_been_killed():
    assert judged("", exit_code=137).category is Category.HOST_OOM
    assert judged(TYPE_ERROR).category is Category.CODE


def test_a_child_that_the_log_names():
    said = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. "
    found = judged(said, own_pids=frozenset({99}))
    assert found.category is Category.HOST_OOM
    launcher = "run.sh: line 3:  4711 Killed                  python train.py"
    assert judged(launcher, own_pids=frozenset({99})).category is Category.HOST_OOM


def test_errors_of_the_gpu_beside_a_fault():
    fault = "RuntimeError: CUDA error: unspecified launch failure"
    broken = (GpuFact(1, "GPU-b", xids=(79,)),)
    assert judged(fault, kernel=(), gpus=broken).category is Category.GPU_HW
    errors = (GpuFact(1, "GPU-b", ecc_errors=2),)
    found = judged(fault, kernel=(), gpus=errors)
    assert (found.category, found.facts["gpu_uuids"]) == (Category.GPU_HW, ["GPU-b"])
    assert judged(fault, kernel=()).category is Category.CUDA_FAULT
