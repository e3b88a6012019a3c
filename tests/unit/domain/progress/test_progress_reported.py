"""Lines of the metrics file: of `runyard.report`, of other languages, and broken ones."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

import runyard.report as report
from runyard.domain.progress.point import Checkpoint, Point
from runyard.domain.progress.reported import parse_line

NOW = 1_790_000_000.0


def told(text: str) -> Point:
    point = parse_line(text, NOW)
    assert isinstance(point, Point)
    return point


def test_what_report_writes_is_what_is_read(tmp_path, monkeypatch):
    """R15, R16: through the real file, NaN included."""
    file = tmp_path / "m.jsonl"
    monkeypatch.setenv("RUNYARD_METRICS_FILE", str(file))
    monkeypatch.setenv("RANK", "2")
    report(step=10, total=40, epoch=0.5, total_epochs=2, loss=math.nan, lr=1e-4, t=7.0)
    report.checkpoint("/out/a.pt", 10, loss=0.5)
    first, second = file.read_text().splitlines()
    point, checkpoint = parse_line(first, NOW), parse_line(second, NOW)
    assert isinstance(point, Point)
    assert (point.source, point.step, point.total_steps, point.fraction) == (
        "report",
        10,
        40,
        0.25,
    )
    assert (point.epoch, point.total_epochs, point.rank) == (0.5, 2, 2)
    assert math.isnan(point.values["loss"])
    assert point.values["learning_rate"] == 1e-4
    assert point.values["t"] == 7.0
    assert isinstance(checkpoint, Checkpoint)
    assert (checkpoint.path, checkpoint.step, checkpoint.rank) == ("/out/a.pt", 10, 2)
    assert checkpoint.values == {"loss": 0.5}


def test_the_least_that_another_language_needs():
    point = told('{"step": 3, "loss": 0.5}')
    assert (point.step, point.at, point.rank) == (3, NOW, 0)


@pytest.mark.parametrize(
    ("said", "at"),
    [
        (NOW - 5, NOW - 5),
        (NOW - 86_400 * 30, NOW - 86_400 * 30),  # the server was away for a month
        (NOW + 86_400, NOW),
        (0, NOW),
        (-1, NOW),
        (1e300, NOW),
        ("yesterday", NOW),
        (True, NOW),
        (None, NOW),
        (10**400, NOW),
    ],
)
def test_clocks_that_are_wrong(said, at):
    assert told(json.dumps({"t": said, "step": 1})).at == at


@pytest.mark.parametrize(
    ("fields", "step", "total", "fraction"),
    [
        ({"step": 5, "total": 10}, 5, 10, 0.5),
        ({"step": 15, "total": 10}, 15, 10, 1.0),
        ({"step": 5, "total": 0}, 5, None, None),
        ({"step": 5, "total": -3}, 5, None, None),
        ({"step": 5.9, "total": 10}, 5, 10, 0.5),
        ({"step": -5, "loss": 1}, None, None, None),
        ({"step": "NaN", "loss": 1}, None, None, None),
        ({"step": 1e300, "loss": 1}, None, None, None),
        ({"step": 10**400, "loss": 1}, None, None, None),
        ({"epoch": 1, "total_epochs": 4}, None, None, 0.25),
        ({"epoch": 1e12, "loss": 1}, None, None, None),
    ],
)
def test_absurd_progress(fields, step, total, fraction):
    point = told(json.dumps(fields))
    assert (point.step, point.total_steps) == (step, total)
    assert point.fraction == fraction


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "not json",
        "[1, 2]",
        "3",
        "null",
        '{"step": 3',
        "{}",
        '{"v": 1, "t": 5}',
        '{"kind": "checkpoint"}',
        '{"kind": "checkpoint", "path": "relative.pt"}',
        '{"kind": "checkpoint", "path": 7}',
        '{"kind": "checkpoint", "path": "/a\\u0000b"}',
        '{"kind": "of a later version", "step": 3}',
        '{"a b": 1}',
        '{"note": "hello"}',
        "[" * 50_000,
        '{"x":' * 20_000,
        '{"step": 1, "loss": ' + "1" * 70_000 + "}",
    ],
)
def test_lines_that_cannot_be_understood(text):
    assert parse_line(text, NOW) is None


@pytest.mark.parametrize("rank", [-1, "0", 1.5, True, None, 10**9])
def test_an_absurd_rank_is_0(rank):
    assert told(json.dumps({"step": 1, "rank": rank})).rank == 0


def test_names_that_would_become_one_stay_apart():
    values = told('{"loss": 1.0, "train_loss": 2.0, "lr": 0.1, "learning_rate": 0.2}').values
    assert values == {"loss": 1.0, "train_loss": 2.0, "lr": 0.1, "learning_rate": 0.2}


@given(some.text())
def test_any_text_is_survived(text):
    parse_line(text, NOW)


@given(
    some.dictionaries(
        some.sampled_from(
            ["step", "total", "epoch", "t", "rank", "loss", "kind", "path", "values"]
        ),
        some.recursive(
            some.none() | some.booleans() | some.floats() | some.integers() | some.text(),
            lambda inner: (
                some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3)
            ),
            max_leaves=5,
        ),
    )
)
def test_any_object_is_survived(fields):
    point = parse_line(json.dumps(fields), NOW)
    if isinstance(point, Point):
        assert point.fraction is None or 0 <= point.fraction <= 1
        assert math.isfinite(point.at)
