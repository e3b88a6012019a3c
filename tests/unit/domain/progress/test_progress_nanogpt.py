"""nanoGPT, and the dialects that grew from it."""

from __future__ import annotations

import pytest

from runyard.domain.progress.hints import from_command
from runyard.domain.progress.reading import Reader, sight


@pytest.mark.parametrize(
    ("line", "step", "total", "values", "rate"),
    [
        ("iter 100: loss 2.3145, time 12.50ms, mfu 3.45%", 100, None, {"loss": 2.3145, "mfu": 0.0345}, 80),
        ("iter 0: loss 10.9871, time 32104.11ms, mfu -100.00%", 0, None, {"loss": 10.9871}, 1000 / 32104.11),
        ("iter 10: loss nan, time 20.00ms, mfu 1.00%", 10, None, {"loss": pytest.approx(float("nan"), nan_ok=True), "mfu": 0.01}, 50),
        ("iter 100: loss 2.31, time 12ms", 100, None, {"loss": 2.31}, 1000 / 12),
        ("step:100/5100 train_loss:4.1025 train_time:12000ms step_avg:120.00ms", 100, 5100, {"loss": 4.1025}, 1000 / 120),
        ("step   10/19560 | loss 10.983021 (+nanz)| norm 15.3 (+nanz)| lr 3.00e-05 | 500.25 ms | 50.1% bf16 MFU | 1048000 tok/s", 10, 19560, {"loss": 10.983021, "grad_norm": 15.3, "learning_rate": 3e-5, "tokens_per_sec": 1048000}, 1000 / 500.25),
        ("step   100 | loss: 5.912345 | lr 6.0e-04 | norm: 1.2034 | dt: 350.20ms | tok/sec: 1500000.00", 100, None, {"loss": 5.912345, "learning_rate": 6e-4, "grad_norm": 1.2034, "tokens_per_sec": 1.5e6}, 1000 / 350.2),
    ],
)  # fmt: skip
def test_steps(line, step, total, values, rate):
    """R14"""
    seen = sight(line)
    assert seen is not None
    assert (seen.family, seen.kind, seen.step, seen.total_steps) == (
        "nanogpt",
        "train",
        step,
        total,
    )
    assert dict(seen.values) == values
    assert seen.rate == pytest.approx(rate)


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        ("step 250: train loss 2.1012, val loss 2.3034", 250, 2.3034),
        ("step 0: train loss 10.9, val loss 10.95", 0, 10.95),
        ("step:125/5100 val_loss:4.6001 train_time:15000ms step_avg:120.00ms", 125, 4.6001),
    ],
)
def test_evaluations(line, step, loss):
    reader = Reader()
    reader.feed("iter 100: loss 2.3145, time 12.50ms, mfu 3.45%", 0.0)
    [point] = reader.feed(line, 1.0)
    assert (point.step, point.values["val_loss"]) == (step, loss)
    assert "loss" not in point.values
    assert point.fraction is None


@pytest.mark.parametrize(
    "line",
    [
        "iter by iter we go",
        "saving checkpoint to out",
        "tokens per iteration will be: 491,520",
        "number of parameters: 123.59M",
        "step | by | step",
        "step 10 | done",
        "step:1/10 warming up",
        "num decayed parameter tensors: 50, with 124,354,560 parameters",
    ],
)
def test_lines_that_say_nothing(line):
    assert Reader().feed(line, 0.0) == []


def test_the_total_may_come_from_the_command():
    reader = Reader(from_command("python train.py config/a.py --max_iters=400 --batch_size=8"))
    [point] = reader.feed("iter 100: loss 2.3145, time 12.50ms, mfu 3.45%", 0.0)
    assert (point.fraction, point.total_steps) == (0.25, 400)
