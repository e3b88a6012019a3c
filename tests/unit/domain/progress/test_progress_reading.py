"""The reader as a whole: whom it believes, what never goes back, and hostile logs."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runyard.domain.progress.hints import Hints, from_command
from runyard.domain.progress.names import canonical, canonical_values
from runyard.domain.progress.point import Point
from runyard.domain.progress.reading import TRUST, Reader, sight
from runyard.domain.progress.written import LONGEST_LINE, clean, count, duration, number, pairs


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("lr", "learning_rate"),
        ("Learning Rate", "learning_rate"),
        ("train/loss", "loss"),
        ("Train Loss", "loss"),
        ("lm loss", "loss"),
        ("eval_loss", "val_loss"),
        ("Validation Loss", "val_loss"),
        ("val/acc", "val_accuracy"),
        ("Acc@1", "accuracy"),
        ("gnorm", "grad_norm"),
        ("tok/s", "tokens_per_sec"),
        ("samples_per_second", "samples_per_sec"),
        ("my_metric", "my_metric"),
        ("value", "value"),
        ("evaluator", "evaluator"),
    ],
)
def test_one_name_for_each(written, name):
    assert canonical(written) == name


def test_no_name_is_taken_twice():
    assert canonical_values({"loss": 1.0, "train_loss": 2.0}) == {"loss": 1.0, "train_loss": 2.0}
    assert canonical_values({"avg_loss": 1.0, "lm_loss": 2.0}) == {"loss": 1.0, "lm_loss": 2.0}
    assert canonical_values({"lr": 1.0, "learning_rate": 2.0}) == {"lr": 1.0, "learning_rate": 2.0}


@pytest.mark.parametrize(
    ("command", "hints"),
    [
        ("python train.py --epochs 10", Hints(None, 10)),
        ("python train.py --max_epochs=5 --max-steps 300", Hints(300, 5)),
        (["python", "t.py", "--num-epochs", "3"], Hints(None, 3)),
        ("python t.py trainer.max_epochs=7", Hints(None, 7)),
        ("python t.py --max_iters=600000", Hints(600000, None)),
        ("python t.py --num_train_epochs 3", Hints(None, None)),  # whose bar runs over all epochs
        ("python t.py --epochs 1.5 --warmup_steps 100", Hints()),
        ("python t.py --save_steps 10 --logging_steps 5", Hints()),
        ("", Hints()),
    ],
)
def test_totals_from_the_command(command, hints):
    assert from_command(command) == hints


def test_what_the_program_reports_wins():
    reader = Reader()
    reader.note_reported(Point(0.0, "report", step=5, fraction=0.05, values={"loss": 1.0}))
    points = reader.feed("Epoch 3/4 - loss: 0.5, acc: 0.9", 1.0)
    assert [(p.fraction, dict(p.values)) for p in points] == [(None, {"accuracy": 0.9})]
    assert points[0].step == 5


def test_a_report_of_metrics_alone_leaves_progress_to_the_log():
    reader = Reader()
    reader.note_reported(Point(0.0, "report", values={"loss": 1.0}))
    [point] = reader.feed("Epoch 3/4 - loss: 0.5, acc: 0.9", 1.0)
    assert (point.fraction, dict(point.values)) == (0.75, {"accuracy": 0.9})


def test_a_late_line_does_not_set_it_back():
    reader = Reader()
    lines = [f"step {n}/100 loss: 0.5" for n in (10, 20, 19, 30)]
    fractions = [p.fraction for line in lines for p in reader.feed(line, 0.0) if p.fraction]
    assert fractions == sorted(fractions)


def test_a_second_training_in_one_log_is_a_new_phase():
    reader = Reader()
    lines = [f"step {n}/100 loss: 0.5" for n in (50, 100, 10, 20, 30)]
    points = [p for line in lines for p in reader.feed(line, 0.0)]
    assert (points[-1].fraction, points[-1].restarts) == (0.3, 1)


def test_colours_and_control_characters():
    line = "\x1b[32mEpoch 1/2\x1b[0m - \x1b[1mloss\x1b[0m: 0.5\x08\x00\x1b]0;title\x07"
    [point] = Reader().feed(line, 0.0)
    assert point.values == {"loss": 0.5}


def test_numbers_as_they_are_written():
    assert number("1,234.5") == 1234.5
    assert number("'2.3E+00'") == 2.3
    assert number("1" * 100) is None
    assert count("-1") is None
    assert count("1e300") is None
    assert duration("01:02") == 62
    assert duration("1:02:03") == 3723
    assert duration("2 days, 1:00:00") == 2 * 86400 + 3600
    assert duration("?") is None
    assert pairs("loss: 0.5 | acc=0.9 version 1.2.3 at 10:11:12") == {"loss": 0.5, "acc": 0.9}
    assert len(clean("x" * 10**6)) == LONGEST_LINE


def hostile_lines():
    chance = random.Random(3)
    pieces = ["Epoch ", "1/", "[", "(", "loss", ": ", "= ", "0.", "e-", "━", "%|", "{'", '{"', "|",
              "step ", "iter ", "it/s", ", ", " - ", "'epoch'", "ETA: ", "\x1b[", "9" * 50, "a" * 70]  # fmt: skip
    yield "x" * 10**6
    yield "Epoch " * 5000
    yield "loss " * 5000
    yield "loss:" * 5000
    yield "0/" * 5000
    yield "a" * 8000 + ":"
    yield "1" * 8000
    yield " " * 8000 + "|"
    yield "Epoch 1/2 " + "a " * 4000
    yield "Epoch 1/2 " + "train " * 1500
    yield "Epoch 1/2 loss " + "a.b_c/" * 1500
    yield "iteration 1/2 |" + "lm loss: " * 900
    yield "step 1/2 |" + "|" * 8000
    yield "step:1/2 " + "a:1" * 2500
    yield "  0%|" + "|" * 8000
    yield "a" * 150 + "  0%|" + " " * 399 + "| " + "1" * 19 + "/" + "1" * 19 + " [" + "0:" * 4000
    yield "{'epoch'" + "': '1" * 1500 + "}"
    yield '{"' + '{"' * 3000 + "}"
    yield "[" * 8000
    yield "\x1b[" * 4000
    yield "\x1b]" * 4000
    yield "1/2 [" + "=" * 8000
    yield "1/2 " + "━" * 8000
    yield "Epoch 1/2 " + "━" * 8000
    yield "".join(chr(chance.randrange(0x110000 - 0x800) % 0xD800) for _ in range(8000))
    for _ in range(60):
        yield "".join(chance.choice(pieces) for _ in range(1500))


def test_no_line_takes_long():
    """R14: also from a log that means harm. Wide bound; a pattern that explodes takes hours."""
    reader = Reader()
    slowest = 0.0
    for line in hostile_lines():
        began = time.process_time()
        reader.feed(line, 0.0)
        slowest = max(slowest, time.process_time() - began)
    assert slowest < 2


def test_ordinary_lines_are_cheap():
    lines = [f"2026-01-02 10:11:12 INFO worker {n} did something ordinary" for n in range(2000)]
    reader = Reader()
    began = time.process_time()
    for line in lines:
        reader.feed(line, 0.0)
    assert time.process_time() - began < 5


ODD = some.text(
    alphabet="Epochstlraniv 0123456789/[]{}'\":=.,-|%<>\t\x1b━e", max_size=120
) | some.text(max_size=60)


@given(some.lists(ODD, max_size=20))
def test_whatever_a_log_says_the_answer_is_sane(lines):
    reader = Reader()
    last = (0, 0.0)
    for line in lines:
        for point in reader.feed(line, 0.0):
            assert point.source in TRUST
            if point.fraction is not None:
                assert 0 <= point.fraction <= 1
                assert (point.restarts, point.fraction) >= last or point.restarts >= last[0]
                last = (point.restarts, point.fraction)


def test_most_names_are_bounded():
    reader = Reader()
    for number_of in range(1000):
        reader.feed(f'{{"step": {number_of}, "loss": 1, "m{number_of}": 1}}', 0.0)
    [point] = reader.feed('{"step": 1001, "loss": 2, "m5000": 1}', 0.0)
    assert dict(point.values) == {"loss": 2.0}


def test_binary_is_survived():
    noise = random.Random(1).randbytes(20_000).decode("latin-1")
    for line in noise.splitlines():
        sight(line)
