"""The Trainer of transformers: lines of versions 4 and 5, and a whole log of version 5.22."""

from __future__ import annotations

import math

import pytest

from runyard.domain.progress.reading import Reader, sight


@pytest.mark.parametrize(
    ("line", "kind", "epoch", "values"),
    [
        ("{'loss': 2.3012, 'learning_rate': 5e-05, 'epoch': 0.1}", "train", 0.1, {"loss": 2.3012, "learning_rate": 5e-05}),
        ("{'loss': 2.3012, 'grad_norm': 1.25, 'learning_rate': 4.9e-05, 'epoch': 1.0}", "train", 1.0, {"loss": 2.3012, "grad_norm": 1.25, "learning_rate": 4.9e-05}),
        ("{'loss': '2.361', 'grad_norm': '2.88', 'learning_rate': '4.167e-05', 'epoch': '0.625'}", "train", 0.625, {"loss": 2.361, "grad_norm": 2.88, "learning_rate": 4.167e-05}),
        ("{'eval_loss': 1.927, 'eval_accuracy': 0.5, 'epoch': 1.0}", "evaluation", 1.0, {"val_loss": 1.927, "val_accuracy": 0.5}),
        ("{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.02}", "train", 0.02, {"loss": 0.0, "grad_norm": pytest.approx(math.nan, nan_ok=True), "learning_rate": 0.0}),
        ("{'train_runtime': 12.3, 'train_samples_per_second': 2442.2, 'train_steps_per_second': 305.3, 'train_loss': 2.67, 'epoch': 3.0}", "summary", 3.0, {"samples_per_sec": 2442.2, "steps_per_sec": 305.3}),
        (" 10%|#    | 5/50 {'loss': 0.5, 'epoch': 0.2}", "train", 0.2, {"loss": 0.5}),
        ("{'loss': 0.69, 'rewards/chosen': 0.1, 'rewards/margins': -0.2, 'epoch': 0.5}", "train", 0.5, {"loss": 0.69, "rewards/chosen": 0.1, "rewards/margins": -0.2}),
    ],
)  # fmt: skip
def test_logs(line, kind, epoch, values):
    """R14"""
    seen = sight(line)
    assert seen is not None
    assert (seen.family, seen.kind, seen.epochs_done) == ("huggingface", kind, epoch)
    assert dict(seen.values) == values


@pytest.mark.parametrize(
    "line",
    [
        "{'input_ids': [1, 2, 3], 'labels': 0}",
        "{'epoch': 3}",
        "{'name': 'loss', 'epoch': 'first'}",
        "{'loss': 0.5, 'epoch': 0.1",
        "config = {'learning_rate': 0.1}",
        "{'a': {'loss': 1}, 'b': 2}",
        "{}",
        "loss 'epoch' {'",
    ],
)
def test_dicts_that_are_no_logs(line):
    assert sight(line) is None


# The order of lines in a real run: bar, log, bar again, the bar of an evaluation below it, its log.
REAL = [
    "  0%|          | 0/24 [00:00<?, ?it/s]",
    "{'loss': '2.361', 'grad_norm': '2.88', 'learning_rate': '4.167e-05', 'epoch': '0.625'}",
    " 21%|##        | 5/24 [00:01<00:00, 4.42it/s]",
    " 33%|###       | 8/24 [00:02<00:00, 4.33it/s]",
    "  0%|          | 0/8 [00:00<?, ?it/s]\x1b[A",
    "100%|##########| 8/8 [00:00<00:00, 22.12it/s]\x1b[A",
    "\x1b[A{'eval_loss': '1.927', 'eval_runtime': '0.0034', 'epoch': '1'}",
    " 33%|###       | 8/24 [00:02<00:00, 4.33it/s]",
    "{'loss': '3.383', 'grad_norm': '2.604', 'learning_rate': '3.125e-05', 'epoch': '1.25'}",
    " 42%|####      | 10/24 [00:03<00:00, 4.24it/s]",
    "100%|##########| 24/24 [00:09<00:00, 4.46it/s]",
    "100%|##########| 8/8 [00:00<00:00, 22.04it/s]\x1b[A",
    "{'train_runtime': '9.07', 'train_steps_per_second': '3.3', 'train_loss': '2.673', 'epoch': '3'}",
]


def test_a_whole_run():
    reader = Reader()
    points = [p for at, line in enumerate(REAL) for p in reader.feed(line, float(at))]
    losses = [(p.step, p.values["loss"]) for p in points if "loss" in p.values]
    assert losses == [(5, 2.361), (10, 3.383)]
    assert [(p.step, p.values["val_loss"]) for p in points if "val_loss" in p.values] == [
        (8, 1.927)
    ]
    fractions = [p.fraction for p in points if p.fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert {p.restarts for p in points} == {0}


def test_without_bars_the_head_gives_the_totals():
    lines = [
        "***** Running training *****",
        "  Num examples = 64",
        "  Num Epochs = 4",
        "  Total optimization steps = 400",
        "{'loss': 2.0, 'learning_rate': 5e-05, 'epoch': 1.0}",
    ]
    reader = Reader()
    points = [p for line in lines for p in reader.feed(line, 0.0)]
    assert len(points) == 1
    assert (points[0].step, points[0].fraction) == (100, 0.25)


def test_an_epoch_rounded_to_two_places_still_finds_its_step():
    lines = [
        "  0%|          | 0/6250 [00:00<?, ?it/s]",
        "{'loss': 2.0, 'learning_rate': 5e-05, 'epoch': 0.02}",
        "  0%|          | 10/6250 [00:01<00:09, 4.42it/s]",
        "{'loss': 1.5, 'learning_rate': 5e-05, 'epoch': 0.03}",
        "  0%|          | 20/6250 [00:02<00:09, 4.42it/s]",
        "{'loss': 1.2, 'learning_rate': 5e-05, 'epoch': 0.05}",
    ]
    reader = Reader()
    points = [p for line in lines for p in reader.feed(line, 0.0)] + reader.finish()
    losses = [(p.step, p.values["loss"]) for p in points if "loss" in p.values]
    assert losses == [(10, 2.0), (20, 1.5), (20, 1.2)]
    assert reader.finish() == []
