"""Keras, before and since version 3 (3.15 was run for these)."""

from __future__ import annotations

import pytest

from runyard.domain.progress.reading import Reader, sight

NEW = "\x1b[1m31/36\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m0s\x1b[0m 2ms/step - loss: 5.3825 - mae: 1.7812"


@pytest.mark.parametrize(
    ("line", "batch", "batches", "values", "rate"),
    [
        ("250/1875 [===>..........................] - ETA: 3s - loss: 0.4012 - accuracy: 0.8801", 250, 1875, {"loss": 0.4012, "accuracy": 0.8801}, None),
        ("1875/1875 [==============================] - 5s 3ms/step - loss: 0.2 - accuracy: 0.9 - val_loss: 0.1 - val_accuracy: 0.95", 1875, 1875, {"loss": 0.2, "accuracy": 0.9, "val_loss": 0.1, "val_accuracy": 0.95}, 333.3),
        (NEW, 31, 36, {"loss": 5.3825, "mae": 1.7812}, 500),
        (" 4/36 ━━━━━━━━━━━━━━━━━━━━ 0s 25ms/step - loss: 4.9e-05 - mae: nan", 4, 36, {"loss": 4.9e-05, "mae": pytest.approx(float("nan"), nan_ok=True)}, 40),
        ("1875/1875 - 5s - loss: 0.3011 - accuracy: 0.9 - 5s/epoch - 3ms/step", 1875, 1875, {"loss": 0.3011, "accuracy": 0.9}, 333.3),
        ("1875/1875 - 2s - 1ms/step - loss: 0.3011 - val_loss: 0.5", 1875, 1875, {"loss": 0.3011, "val_loss": 0.5}, 1000),
        ("31/Unknown ━━━━━━━━━━━━━━━━━━━━ 0s 2ms/step - loss: 5.38", 31, None, {"loss": 5.38}, 500),
        ("10/100 ━━━━ 1s 20ms/step - learning_rate: 0.001 - sparse_categorical_accuracy: 0.5 - loss: 1.0", 10, 100, {"learning_rate": 0.001, "accuracy": 0.5, "loss": 1.0}, 50),
    ],
)  # fmt: skip
def test_bars(line, batch, batches, values, rate):
    """R14"""
    seen = sight(line)
    assert seen is not None
    assert (seen.family, seen.batch, seen.batches) == ("keras", batch, batches)
    assert dict(seen.values) == values
    assert seen.rate == (None if rate is None else pytest.approx(rate, rel=0.01))


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 1: val_loss improved from inf to 0.21431, saving model to best.keras",
        "313/313 ━━━━━━━━━━━━━━━━━━━━ 0s 700us/step",
        "3/10 of the files",
        "12/24/2026 - loss: 0.5",
        'Model: "sequential"',
        " Total params: 5 (20.00 B)",
        "1/1 [==============================] - 0s 30ms/step",
        "Epoch 1/x",
    ],
)
def test_lines_that_say_nothing(line):
    assert Reader().feed(line, 0.0) == []


def test_two_epochs_and_an_evaluation_after_them():
    lines = []
    for epoch in (1, 2):
        lines.append(f"Epoch {epoch}/2")
        lines += [f"{n}/4 ━━━━ 0s 2ms/step - loss: 0.{n}" for n in range(1, 5)]
    lines += ["10/10 ━━━━ 0s 1ms/step - loss: 9.0", "4/4 ━━━━ 0s 1ms/step - loss: 9.0"]
    reader = Reader()
    points = [p for line in lines for p in reader.feed(line, 0.0)]
    assert points[-1].fraction == 1.0
    assert (points[-1].step, points[-1].total_steps) == (8, 8)
    assert all(p.values.get("loss") != 9.0 for p in points)
    fractions = [p.fraction for p in points if p.fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[2] == pytest.approx(0.25)


def test_an_evaluation_alone_is_no_training():
    assert Reader().feed("10/10 ━━━━ 0s 1ms/step - loss: 9.0", 0.0) == []
