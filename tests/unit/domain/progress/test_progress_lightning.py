"""Lightning: bars as version 2.6 draws them, with tqdm and with rich."""

from __future__ import annotations

import pytest

from runyard.domain.progress.hints import from_command
from runyard.domain.progress.reading import Reader, sight


@pytest.mark.parametrize(
    ("line", "batch", "batches", "epoch", "values"),
    [
        ("Epoch 0:   2%|▏         | 20/938 [00:00<00:31, 29.21it/s, v_num=3, train_loss=2.1]", 20, 938, 0, {"loss": 2.1}),
        ("Epoch 12: 100%|██████████| 938/938 [00:20<00:00, 46.0it/s, loss=0.05, v_num=0]", 938, 938, 12, {"loss": 0.05}),
        ("Epoch 1:  50%|█████     | 469/938 [00:10<00:10, 46.0it/s, v_num=0, train_loss_step=0.1, train_loss_epoch=0.2]", 469, 938, 1, {"train_loss_step": 0.1, "train_loss_epoch": 0.2}),
        ("Epoch 2/2  ━━━━━━━━━━━━━━━━ 40/40 0:00:00 • 0:00:00 696.72it/s train_loss: 0.25", 40, 40, 2, {"loss": 0.25}),
        ("Epoch 0/9 ━━━━━━━━━━━━━━━━━━━ 10/40 0:00:03 • 0:00:09 3.17it/s v_num: 4.000 train_loss: 0.5 val_loss: 0.6", 10, 40, 0, {"loss": 0.5, "val_loss": 0.6}),
        ("\x1b[37mEpoch 3/9 \x1b[0m \x1b[38;5;69m━━━━━╸\x1b[0m━━━ 21/40 \x1b[2m0:00:03 • 0:00:09\x1b[0m 3.17it/s", 21, 40, 3, {}),
    ],
)  # fmt: skip
def test_bars(line, batch, batches, epoch, values):
    """R14"""
    seen = sight(line)
    assert seen is not None
    assert (seen.family, seen.kind) == ("lightning", "train")
    assert (seen.batch, seen.batches, seen.epoch, seen.epoch_base) == (batch, batches, epoch, 0)
    assert dict(seen.values) == values


@pytest.mark.parametrize(
    "line",
    [
        "Validation DataLoader 0:  50%|█████     | 20/40 [00:00<00:00, 796.34it/s] \x1b[A",
        "Validation: |          | 0/? [00:00<?, ?it/s]\x1b[A",
        "Validation ━━━━━━━━━━━━━━━━━━━━ 40/40 0:00:00 • 0:00:00 800.10it/s",
        "Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 90.18it/s]",
        "GPU available: False, used: False",
        "`Trainer.fit` stopped: `max_epochs=3` reached.",
        "┃   ┃ Name ┃ Type   ┃ Params ┃ Mode  ┃ FLOPs ┃",
        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━",
        "Trainable params: 5",
    ],
)
def test_lines_that_move_nothing(line):
    assert Reader().feed(line, 0.0) == []


def test_epochs_in_all_from_the_rich_bar():
    reader = Reader()
    line = "Epoch 2/2  ━━━━━━━━━━ 20/40 0:00:00 • 0:00:00 6.72it/s train_loss: 0.25"
    [point] = reader.feed(line, 0.0)
    assert point.total_epochs == 3
    assert point.fraction == pytest.approx(2.5 / 3)
    assert (point.step, point.total_steps) == (100, 120)


def test_epochs_in_all_from_the_command():
    hints = from_command("python fit.py --trainer.max_epochs 4")
    reader = Reader(hints)
    line = "Epoch 1:  50%|█████     | 20/40 [00:10<00:10, 4.0it/s, v_num=0, train_loss=0.1]"
    [point] = reader.feed(line, 0.0)
    assert point.fraction == pytest.approx(1.5 / 4)


def test_the_end_tells_the_total():
    reader = Reader()
    bar = "Epoch 1: 100%|██████████| 40/40 [00:10<00:00, 4.0it/s, v_num=0, train_loss=0.1]"
    assert reader.feed(bar, 0.0)[0].fraction is None
    reader.feed("`Trainer.fit` stopped: `max_epochs=2` reached.", 1.0)
    assert reader.feed(bar, 2.0)[0].fraction == 1.0


def test_the_banner_says_that_epochs_count_from_0():
    reader = Reader(from_command(["python", "fit.py", "--max_epochs", "10"]))
    reader.feed("GPU available: True (cuda), used: True", 0.0)
    # resumed at epoch 5, so no 0 is ever shown
    [point] = reader.feed("Epoch 5:  50%|#####     | 20/40 [00:10<00:10, 4.0it/s]", 0.0)
    assert point.epoch == 5.5
