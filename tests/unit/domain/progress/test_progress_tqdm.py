"""tqdm: lines as version 4.70 draws them, and bars that are no training."""

from __future__ import annotations

import pytest

from runyard.domain.progress import tqdm
from runyard.domain.progress.hints import Hints
from runyard.domain.progress.reading import Reader, sight


@pytest.mark.parametrize(
    ("line", "batch", "batches", "rate", "values"),
    [
        ("  0%|          | 0/24 [00:00<?, ?it/s]", 0, 24, None, {}),
        (" 21%|██        | 5/24 [00:00<00:00, 204.42it/s]", 5, 24, 204.42, {}),
        ("100%|##########| 24/24 [00:10<00:00,  2.4it/s]", 24, 24, 2.4, {}),
        (" 50%|█████     | 10/20 [00:13<00:13,  1.30s/it]", 10, 20, 1 / 1.3, {}),
        (
            "Training:  40%|████      | 40/100 [00:00<00:00, 23.66batch/s, loss=0.25, lr=0.0001]",
            40,
            100,
            23.66,
            {"loss": 0.25, "learning_rate": 0.0001},
        ),
        (
            "Epoch 0:  75%|███████▌  | 30/40 [00:00<00:00, 345.54it/s, train_loss=1e-6, val_loss=0.3]",
            30,
            40,
            345.54,
            {"loss": 1e-6, "val_loss": 0.3},
        ),
        (
            "train:  10%|█   | 100/1000 [1:02:03<9:18:27, 37.23s/it, loss=nan, acc=0.5]",
            100,
            1000,
            1 / 37.23,
            {"loss": pytest.approx(float("nan"), nan_ok=True), "accuracy": 0.5},
        ),
        ("loss 0.52:   7%|▋         | 7/100 [00:03<00:41,  2.20it/s]", 7, 100, 2.2, {}),
        (
            "Iteration:  12%|█▏        | 12/100 [00:03<2 days, 1:00:41,  2.20it/s]",
            12,
            100,
            2.2,
            {},
        ),
    ],
)
def test_bars_of_training(line, batch, batches, rate, values):
    """R14"""
    seen = sight(line)
    assert seen is not None
    assert seen.family == "tqdm"
    assert seen.kind == "train"
    assert (seen.batch, seen.batches) == (batch, batches)
    assert seen.rate == (None if rate is None else pytest.approx(rate))
    assert dict(seen.values) == values


@pytest.mark.parametrize(
    "line",
    [
        "Downloading model.bin:  50%|█████     | 5.00M/10.0M [00:00<00:00, 477MB/s]",
        "model.safetensors: 100%|██████████| 440M/440M [00:04<00:00, 98.1MB/s]",
        "Map:  43%|████▎     | 43000/100000 [00:04<00:05, 10010.33 examples/s]",
        "Map (num_proc=4): 100%|██████████| 1000/1000 [00:00<00:00, 5034.11 examples/s]",
        "Tokenizing:  10%|█         | 100/1000 [00:01<00:09, 99.2it/s]",
        "Filter: 100%|██████████| 25000/25000 [00:01<00:00, 20000.1 examples/s]",
        "Loading checkpoint shards:  50%|█████     | 1/2 [00:05<00:05,  5.10s/it]",
        "Generating train split: 3000 examples [00:00, 80000 examples/s]",
        "Fetching 12 files:  25%|██▌       | 3/12 [00:03<00:09,  1.00it/s]",
        "Saving the dataset (1/1 shards): 100%|████| 1000/1000 [00:00<00:00, 9000 examples/s]",
        "100%|██████████| 170M/170M [00:03<00:00, 50.1MB/s]",
        "Batches:  50%|█████     | 5/10 [00:01<00:01,  4.0it/s]",
        "no total: 50it [00:00, 182.13it/s]",
        "disk usage 45%|  | of 100/200 [not a bar]",
        " 45% done, 45/100",
    ],
)
def test_bars_that_are_no_training(line):
    assert Reader().feed(line, 0.0) == []


@pytest.mark.parametrize(
    "line",
    [
        "Validation DataLoader 0:  25%|██▌       | 10/40 [00:00<00:00, 1137.41it/s]\x1b[A",
        "Evaluating: 100%|██████████| 8/8 [00:00<00:00, 22.04it/s]",
        "Testing:  50%|█████     | 4/8 [00:00<00:00, 22.04it/s]",
        "Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00, 10.0it/s]",
    ],
)
def test_bars_of_evaluation_move_nothing(line):
    reader = Reader()
    reader.feed("Training:  40%|████      | 40/100 [00:00<00:00, 23.66it/s]", 0.0)
    assert reader.feed(line, 1.0) == []


def bar(done, total, desc="", inner=False):
    words = f"{desc}: " if desc else ""
    up = "\x1b[A" if inner else ""
    return f"{words}{100 * done // total:3}%|####| {done}/{total} [00:01<00:02, 5.00it/s]{up}"


def fractions(lines, hints=None):
    reader = Reader(hints)
    points = [point for at, line in enumerate(lines) for point in reader.feed(line, float(at))]
    return [None if point.fraction is None else round(point.fraction, 4) for point in points]


def test_one_bar():
    assert fractions([bar(n, 4) for n in range(5)]) == [0, 0.25, 0.5, 0.75, 1]


def test_epochs_in_the_words_before_the_bar():
    lines = [bar(n, 2, f"Epoch {epoch}/3") for epoch in (1, 2, 3) for n in range(3)]
    assert fractions(lines) == [0, 0.1667, 0.3333, 0.5, 0.6667, 0.8333, 1]


def test_epochs_counted_from_0_with_a_total_from_the_command():
    lines = [bar(n, 2, f"Epoch {epoch}") for epoch in range(2) for n in range(3)]
    assert fractions(lines) == [None] * 5
    assert fractions(lines, Hints(total_epochs=2)) == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize("outer", ["epochs", "Epoch", ""])
def test_a_bar_of_batches_inside_a_bar_of_epochs(outer):
    lines = [bar(0, 2, outer)]
    for epoch in range(2):
        lines += [bar(n, 4, inner=True) for n in range(5)]
        lines.append(bar(epoch + 1, 2, outer))
    seen = fractions(lines)
    assert seen == sorted(seen)
    assert {0.125, 0.25, 0.5, 0.625, 0.875, 1.0} <= set(seen)


def test_an_outer_bar_that_is_drawn_too_seldom():
    lines = [bar(0, 3, "epochs")]
    for _ in range(3):
        lines += [bar(n, 4, inner=True) for n in (1, 4)]
    assert fractions(lines)[-1] == 1.0


def test_a_bar_again_for_each_epoch_without_words():
    lines = [bar(n, 4) for _ in range(3) for n in (0, 2, 4)]
    reader = Reader()
    steps = [point.step for line in lines for point in reader.feed(line, 0.0)]
    assert steps == sorted(steps)
    assert set(steps) == {0, 2, 4, 6, 8, 10, 12}
    assert fractions(lines, Hints(total_epochs=3))[-1] == 1.0
    assert fractions(lines)[-1] is None  # how many there will be nobody said


def test_a_header_before_each_bar():
    lines = []
    for epoch in (1, 2):
        lines.append(f"Epoch {epoch}/2")
        lines += [bar(n, 2) for n in range(3)]
    assert fractions(lines)[-1] == 1.0
    assert 0.75 in fractions(lines)


def test_a_line_after_each_bar():
    lines = []
    for epoch in (1, 2):
        lines += [bar(n, 2) for n in range(3)]
        lines.append(f"Epoch {epoch}/2 - loss: 0.5")
    seen = fractions(lines)
    assert seen[-1] == 1.0
    assert 0.75 in seen


def test_a_validation_bar_without_words_after_each_training_bar():
    lines = []
    for epoch in range(3):
        lines += [bar(n, 100, f"Epoch {epoch + 1}/3") for n in (0, 50, 100)]
        lines += [bar(n, 20) for n in (0, 10, 20)]
    seen = fractions(lines)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_preparation_without_words_gives_way_to_the_training():
    lines = [bar(n, 10) for n in (0, 5, 10)] + [bar(n, 1000) for n in (0, 10, 500)]
    assert fractions(lines)[-1] == 0.5


def test_a_bar_drawn_twice_is_one_point():
    assert len(fractions([bar(1, 4), bar(1, 4), bar(1, 4)])) == 1


def test_a_bar_that_is_cleared_does_not_set_it_back():
    lines = [bar(40, 40, "Epoch 0"), bar(0, 40, "Epoch 0"), bar(0, 40, "Epoch 1")]
    reader = Reader()
    steps = [point.step for line in lines for point in reader.feed(line, 0.0)]
    assert steps == [40]


def test_labels():
    assert tqdm.is_labelled_training("train epoch #")
    assert not tqdm.is_labelled_training("")
