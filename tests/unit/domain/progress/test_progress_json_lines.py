"""JSON lines as different programs write them."""

from __future__ import annotations

import pytest

from runyard.domain.progress.reading import Reader, sight


@pytest.mark.parametrize(
    ("line", "step", "fraction", "values"),
    [
        ('{"step": 10, "loss": 0.5}', 10, None, {"loss": 0.5}),
        ('{"step": 10, "total_steps": 40, "loss": 0.5, "lr": 0.1}', 10, 0.25, {"loss": 0.5, "learning_rate": 0.1}),
        ('{"global_step": 7, "max_steps": 14, "train/loss": 1.5, "eval/loss": 2.5}', 7, 0.5, {"loss": 1.5, "val_loss": 2.5}),
        ('{"epoch": 1, "epochs": 4, "loss": 0.5}', None, 0.25, {"loss": 0.5}),
        ('{"epoch": 0.5, "num_epochs": 2, "step": 50, "loss": 0.5}', 50, 0.25, {"loss": 0.5}),
        ('2026-01-02 10:11:12 | INFO | train | {"epoch": 1, "update": 5, "loss": "10.312", "ppl": "1271.1"}', 5, None, {"loss": 10.312, "perplexity": 1271.1}),
        ('{"timestamp": "2026-01-02T10:11:12Z", "level": "info", "iteration": 3, "metrics": {"loss": 0.1, "accuracy": 0.9}}', 3, None, {"loss": 0.1, "accuracy": 0.9}),
        ('{"step": 3, "loss": NaN}', 3, None, {"loss": pytest.approx(float("nan"), nan_ok=True)}),
        ('{"step": 3, "loss": "Infinity", "ok": true}', 3, None, {"loss": float("inf"), "ok": 1.0}),
    ],
)  # fmt: skip
def test_objects(line, step, fraction, values):
    """R14"""
    [point] = Reader().feed(line, 0.0)
    assert point.source == "json"
    assert (point.step, point.fraction) == (step, fraction)
    assert dict(point.values) == values


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "info", "ts": 1760000000.1, "msg": "started", "port": 8080}',
        '{"step": "first"}',
        '{"step": 3}',
        '{"name": "config", "hidden": 64, "layers": 4}',
        '{"step": 3, "loss": 0.5',
        '["step", 3]',
        '{"loss": null}',
        '{"step": -4, "note": "x"}',
        '{"a": ' * 2000,
        "{" * 8000,
    ],
)
def test_objects_that_say_nothing(line):
    assert Reader().feed(line, 0.0) == []


def test_json_is_believed_before_a_bar():
    reader = Reader()
    reader.feed(" 90%|#########  | 90/100 [00:10<00:01, 9.0it/s, loss=0.3]", 0.0)
    [point] = reader.feed('{"step": 10, "total": 1000, "loss": 0.51}', 1.0)
    assert point.fraction == 0.01
    later = reader.feed(" 91%|#########  | 91/100 [00:10<00:01, 9.0it/s, loss=0.3]", 2.0)
    assert all(p.fraction is None and p.step == 10 and not p.values for p in later)


def test_an_evaluation_is_no_step_back():
    seen = sight('{"step": 10, "val_loss": 0.5}')
    assert seen is not None
    assert seen.kind == "evaluation"
