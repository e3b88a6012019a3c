"""Megatron-LM, older and newer."""

from __future__ import annotations

import pytest

from runyard.domain.progress.reading import Reader, sight

LINE = (
    " [2026-01-02 10:11:12] iteration      100/    5000 | consumed samples:        25600 | "
    "elapsed time per iteration (ms): 812.5 | throughput per GPU (TFLOP/s/GPU): 150.2 | "
    "learning rate: 1.500000E-04 | global batch size:   256 | lm loss: 2.345678E+00 | "
    "loss scale: 1.0 | grad norm: 0.512 | number of skipped iterations:   0 | "
    "number of nan iterations:   0 |"
)


def test_a_line():
    """R14"""
    [point] = Reader().feed(LINE, 0.0)
    assert (point.source, point.step, point.total_steps) == ("megatron", 100, 5000)
    assert point.fraction == 0.02
    assert point.rate == pytest.approx(1 / 0.8125)
    assert point.values["loss"] == 2.345678
    assert point.values["learning_rate"] == 1.5e-4
    assert point.values["grad_norm"] == 0.512
    assert point.values["tflops_per_gpu"] == 150.2
    assert point.values["consumed_samples"] == 25600
    assert point.values["nan_iterations"] == 0


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        (" iteration       10/   20 | elapsed time per iteration (ms): 9.1 | lm loss: 1.0E+01 |", 10, 10),
        ("0: iteration 7/ 9 | consumed samples: 70 | consumed tokens: 143360 | lm loss: nan | grad norm: 1.0 |", 7, None),
        ("iteration 500/500 | learning rate: 0.000E+00 | lm loss: 2.000000E+00 | loss scale: 65536.0 |", 500, 2),
        (" [2026-01-02 10:11:12.123456] iteration 1/ 3 | loss: 3.5 | samples per second: 12.5 |", 1, 3.5),
        ("[Rank 7] iteration 20/ 100 | lm loss: 5.0E-01 | params norm: 400.1 |", 20, 0.5),
        ("iteration 1234/ 5000 | lm loss: 1.1E+00 | mtp_1 loss: 2.0E+00 |", 1234, 1.1),
        (" iteration      100/  500000 | consumed samples: 102400 | lm loss: 6.9E+00 |", 100, 6.9),
    ],
)  # fmt: skip
def test_variants(line, step, loss):
    seen = sight(line)
    assert seen is not None
    assert (seen.family, seen.kind, seen.step) == ("megatron", "train", step)
    if loss is not None:
        assert seen.values["loss"] == pytest.approx(loss)


def test_validation():
    reader = Reader()
    reader.feed(LINE, 0.0)
    line = " validation loss at iteration 1000 | lm loss value: 2.3E+00 | lm loss PPL: 9.97E+00 | "
    [point] = reader.feed(line, 1.0)
    assert point.step == 1000
    assert point.values["val_loss"] == 2.3
    assert point.fraction is None


@pytest.mark.parametrize(
    "line",
    [
        "successfully saved checkpoint from iteration     100 to out [ t 1/1, p 1/1 ]",
        "(min, max) time across ranks (ms):",
        "    forward-backward ...............................: (700.31, 700.35)",
        "iteration | loss",
        "iteration 5 of 10 | loss",
        "exiting program at iteration 500",
        " > loading checkpoint from out at iteration 100",
    ],
)
def test_lines_that_say_nothing(line):
    assert Reader().feed(line, 0.0) == []
