"""Loops that people write themselves."""

from __future__ import annotations

import pytest

from runyard.domain.progress.reading import Reader, sight


def last(*lines):
    reader = Reader()
    points = [point for line in lines for point in reader.feed(line, 0.0)]
    return points[-1] if points else None


@pytest.mark.parametrize(
    ("line", "epoch", "total", "fraction", "values"),
    [
        ("Epoch 3/100 - Loss: 2.345", 3, 100, 0.03, {"loss": 2.345}),
        ("Epoch 3/100, Loss: 2.345, Accuracy: 0.91", 3, 100, 0.03, {"loss": 2.345, "accuracy": 0.91}),
        ("[INFO] Epoch: 3/100 | train_loss=1.5e-3 | val_loss=0.2", 3, 100, 0.03, {"loss": 0.0015, "val_loss": 0.2}),
        ("epoch 3/60 loss=0.1234 accuracy=0.987 lr=0.0100", 3, 60, 0.05, {"loss": 0.1234, "accuracy": 0.987, "learning_rate": 0.01}),
        ("Epoch [3/5] Train Loss: 0.5 Val Loss: 0.6", 3, 5, 0.6, {"loss": 0.5, "val_loss": 0.6}),
        ("Epoch 3 of 4: loss 0.25, acc 91.5%", 3, 4, 0.75, {"loss": 0.25, "accuracy": 0.915}),
        ("2026-01-02 10:11:12,345 - train - INFO - Epoch 1/2 loss: nan", 1, 2, 0.5, {"loss": pytest.approx(float("nan"), nan_ok=True)}),
        ("Epoch 007 | Loss 0.4321 | LR 3.00e-04", 7, None, None, {"loss": 0.4321, "learning_rate": 3e-4}),
        ("Epoch 10/10 - loss: 1,234.5", 10, 10, 1.0, {"loss": 1234.5}),
    ],
)  # fmt: skip
def test_the_end_of_an_epoch(line, epoch, total, fraction, values):
    """R14"""
    point = last(line)
    assert point is not None
    assert point.source == "epoch_loss"
    assert (point.epoch, point.total_epochs if fraction else None) == (epoch, total)
    assert point.fraction == (None if fraction is None else pytest.approx(fraction))
    assert dict(point.values) == values


@pytest.mark.parametrize(
    ("line", "fraction", "step", "loss"),
    [
        ("Epoch [1/5], Step [300/600], Loss: 0.3021", 0.1, 300, 0.3021),
        ("Epoch 2/5 | Batch 30/60 | loss: 0.5", 0.3, 90, 0.5),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300117", None, None, 2.300117),
        ("Epoch: [0][ 100/5004]\tTime  0.512 ( 0.601)\tLoss 6.9012e+00 (6.9503e+00)\tAcc@1   0.39", None, 100, 6.9012),
        ("Epoch: [0]  [ 100/5004]  eta: 1:02:03  lr: 0.1  img/s: 312.5  loss: 6.9012 (6.9503)  acc1: 0.39 (0.3)", None, 100, 6.9012),
        ("Step 100/1000 - loss: 0.5", 0.1, 100, 0.5),
        ("step=100 loss=0.5 lr=0.001", None, 100, 0.5),
        ("Iteration 250: loss=1.25", None, 250, 1.25),
        ("[100/1000] loss: 0.300", 0.1, 100, 0.3),
        ("iter 40/80 train loss 1.5", 0.5, 40, 1.5),
    ],
)  # fmt: skip
def test_inside_an_epoch(line, fraction, step, loss):
    point = last(line)
    assert point is not None
    assert point.fraction == (None if fraction is None else pytest.approx(fraction))
    assert point.step == step
    assert point.values["loss"] == pytest.approx(loss)


@pytest.mark.parametrize(
    "line",
    [
        "Saved checkpoint at epoch 3",
        "Epoch 1: val_loss improved from inf to 0.21, saving model to best.keras",
        "Loading epoch 3 weights",
        "Training for 100 epochs",
        "step into the light",
        "Using batch size 64, lr 0.1",
        "Traceback (most recent call last):",
        '  File "train.py", line 10, in <module>',
        "Downloading shard 3/10",
        "[3/10] Building wheel",
        "Early stopping at epoch 12",
        "",
        "2026-01-02 10:11:12 INFO server started on port 8080",
    ],
)
def test_lines_that_say_nothing(line):
    assert Reader().feed(line, 0.0) == []


def test_the_test_set():
    point = last("Test set: Average loss: 0.0512, Accuracy: 9834/10000 (98%)")
    assert point is not None
    assert point.values["val_loss"] == 0.0512
    assert "val_accuracy" not in point.values  # a count, not a share
    assert point.fraction is None


def test_epochs_from_0_under_a_header_run_to_the_last_number():
    lines = []
    for epoch in range(4):
        lines += [
            f"Epoch {epoch}/3",
            "-" * 10,
            "train Loss: 0.5 Acc: 0.7",
            "val Loss: 0.6 Acc: 0.6",
        ]
    reader = Reader()
    fractions = [
        p.fraction for line in lines for p in reader.feed(line, 0.0) if p.fraction is not None
    ]
    assert fractions == [0, 0.25, 0.5, 0.75]


def test_epochs_from_0_with_metrics_end_one_before_the_total():
    reader = Reader()
    points = [p for n in range(4) for p in reader.feed(f"Epoch {n}/4 loss: 0.5", 0.0)]
    assert [p.fraction for p in points] == [0.25, 0.5, 0.75, 1.0]


def test_many_lines_in_one_epoch_are_not_its_end():
    reader = Reader()
    lines = [f"Epoch 1/10 loss: 0.{n}" for n in range(1, 9)] + ["Epoch 2/10 loss: 0.1"] * 5
    last_point = [p for line in lines for p in reader.feed(line, 0.0)][-1]
    assert last_point.fraction == pytest.approx(0.1)


def test_samples_are_no_steps():
    lines = [
        f"Train Epoch: {epoch} [{n}/60000 ({n // 600}%)]\tLoss: 0.5"
        for epoch in (1, 2)
        for n in (0, 30000, 59900)
    ]
    reader = Reader()
    points = [p for line in lines for p in reader.feed(line, 0.0)]
    assert all(p.step is None for p in points)
    assert points[-1].epoch == pytest.approx(1.998, abs=0.001)


def test_a_header_is_no_metric():
    seen = sight("Epoch 2/5")
    assert seen is not None
    assert seen.kind == "header"
