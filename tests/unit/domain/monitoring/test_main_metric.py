"""Which metric tells most, and which way is better."""

import math

import pytest

from runyard.domain.monitoring import main_metric


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("lr", "loss", "val_loss"), "loss"),
        (("epoch", "val_loss", "accuracy"), "val_loss"),
        (("train/loss_total", "bleu", "grad_norm"), "train/loss_total"),
        (("bleu", "learning_rate", "system.rss_mb", "gpu.util"), "bleu"),
        (("system.rss_mb", "gpu.util", "lr", "epoch"), None),
        ((), None),
    ],
)
def test_the_one_that_tells_most(names, chosen):
    assert main_metric.choose(names) == chosen


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("loss", "min"),
        ("accuracy_loss", "min"),
        ("perplexity", "min"),
        ("val_accuracy", "max"),
        ("macro_F1", "max"),
        ("episode_reward", "max"),
        ("tokens_per_sec", "max"),
        ("something", "min"),
    ],
)
def test_which_way_is_better(name, way):
    assert main_metric.direction(name) == way


def test_the_best_is_finite():
    values = [3.0, math.nan, -math.inf, 2.0, math.inf]
    assert main_metric.best(values, "min") == 2.0
    assert main_metric.best(values, "max") == 3.0
    assert main_metric.best([math.nan], "min") is None
