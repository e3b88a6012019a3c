"""DeepSpeed: lines of its engine and of its pipeline engine."""

from __future__ import annotations

import pytest

from runyard.domain.progress.hints import Hints
from runyard.domain.progress.reading import Reader, sight

HEAD = "[2026-01-02 10:11:12,345] [INFO] [logging.py:96:log_dist] [Rank 0] "


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        ("step=100, skipped=0, lr=[5e-05], mom=[[0.9, 0.999]]", 100, {"learning_rate": 5e-05}),
        ("step=10, skipped=2, lr=[0.0001, 0.0001], mom=[(0.9, 0.95)]", 10, {"learning_rate": 1e-4}),
        ("step=2000, skipped=13, lr=[0.0], mom=[0.9]", 2000, {"learning_rate": 0.0}),
        ("epoch=0/micro_step=100/global_step=50, RunningAvgSamplesPerSec=12.31, CurrSamplesPerSec=12.5, MemAllocated=1.2GB, MaxMemAllocated=3.4GB", 50, {"samples_per_sec": 12.31}),
        ("epoch=3/micro_step=9/global_step=9, RunningAvgSamplesPerSec=1e3, CurrSamplesPerSec=999.0, MemAllocated=0.0GB", 9, {"samples_per_sec": 1000.0}),
        ("steps: 10 loss: 9.8312 iter time (s): 0.512 samples/sec: 15.625", 10, {"loss": 9.8312, "samples_per_sec": 15.625}),
    ],
)  # fmt: skip
def test_lines(line, step, values):
    """R14"""
    seen = sight(HEAD + line)
    assert seen is not None
    assert (seen.family, seen.step, dict(seen.values)) == ("deepspeed", step, values)


def test_the_pipeline_engine_tells_its_speed():
    seen = sight("steps: 10 loss: 9.8312 iter time (s): 0.500 samples/sec: 15.625")
    assert seen is not None
    assert seen.rate == 2.0


@pytest.mark.parametrize(
    "line",
    [
        HEAD + "DeepSpeed info: version=0.14.2, git-hash=unknown, git-branch=unknown",
        HEAD + "time (ms) | forward: 12.00 | backward: 24.00 | step: 3.00",
        HEAD + "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536",
        HEAD + "DeepSpeed Final Optimizer = adam",
        "step=, skipped=, lr=[]",
        "[WARNING] step=1, lr=[x]",
        "global_step=100",
        "Saving step=100 checkpoint",
    ],
)
def test_lines_that_say_nothing(line):
    assert Reader().feed(line, 0.0) == []


def test_the_total_may_come_from_the_command():
    reader = Reader(Hints(total_steps=400))
    [point] = reader.feed(HEAD + "step=100, skipped=0, lr=[5e-05], mom=[[0.9]]", 0.0)
    assert point.fraction == 0.25
