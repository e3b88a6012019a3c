"""What a line of the metrics file holds."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runyard.report import lines

HEAD = {"v": 1, "t": 1.5, "m": 2.5, "pid": 7, "rank": 0}


class Scalar:
    """What numpy and torch give for one number."""

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class Broken:
    def item(self):
        raise RuntimeError("the device is gone")


class ManyElements:
    def item(self):
        raise ValueError("only one element can be converted")


def told(**metrics) -> dict:
    line = lines.encode(HEAD, metrics)
    assert line is not None
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


@pytest.mark.parametrize(
    ("given_value", "written"),
    [
        (3, 3),
        (0.25, 0.25),
        (True, 1),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Scalar(2.5), 2.5),
        (Scalar(7), 7),
        (Scalar(math.nan), "NaN"),
        (Decimal("1.5"), 1.5),
        (Fraction(1, 4), 0.25),
        (10**400, "Infinity"),
        (-(10**400), "-Infinity"),
        (2**70, float(2**70)),
        (5e-324, 5e-324),
    ],
)
def test_numbers_of_all_kinds(given_value, written):
    """R16: NaN and infinities survive, as words."""
    assert told(loss=given_value)["loss"] == written


@pytest.mark.parametrize(
    "value", [None, "0.5", b"1", [1.0], {"a": 1}, object(), Broken(), ManyElements()]
)
def test_what_is_no_number_is_left_out(value):
    assert "loss" not in told(step=1, loss=value)


@pytest.mark.parametrize("name", ["eval/loss", "gpu.util", "top-5", "A_1", "x" * 128])
def test_good_names(name):
    assert told(**{name: 1.0})[name] == 1.0


@pytest.mark.parametrize(
    "name", ["", "a b", 'say"so', "back\\slash", "line\nbreak", "größe", "x" * 129, "\0"]
)
def test_absurd_names_are_left_out(name):
    assert set(told(step=1, **{name: 1.0})) == {*HEAD, "step"}


def test_a_metric_named_like_a_field_of_the_line_is_kept_apart():
    seen = told(t=3.0, rank=9, pid=1, loss=0.5)
    assert seen["values"] == {"t": 3.0, "rank": 9, "pid": 1}
    assert (seen["t"], seen["rank"], seen["loss"]) == (1.5, 0, 0.5)


def test_nothing_to_tell_is_no_line():
    assert lines.encode(HEAD, {"loss": None, "note": "hello"}) is None
    assert lines.encode({**HEAD, "kind": "checkpoint", "path": "/x"}, {}) is not None


def test_a_thousand_long_names_stay_below_the_longest_line():
    line = lines.encode(HEAD, {f"{number:04}{'n' * 124}": -1.0 / 3 for number in range(1000)})
    assert line is not None
    assert len(line) <= lines.LONGEST_LINE
    assert len(json.loads(line)) <= lines.MOST_VALUES


@given(
    some.dictionaries(
        some.text(max_size=140),
        some.one_of(some.floats(), some.integers(), some.text(), some.none(), some.booleans()),
        max_size=20,
    )
)
def test_whatever_is_given_the_line_is_whole(metrics):
    line = lines.encode(HEAD, metrics)
    if line is not None:
        assert line.count(b"\n") == 1
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@given(some.text())
def test_any_path_is_written_as_json(path):
    line = lines.encode({**HEAD, "kind": "checkpoint", "path": path}, {})
    assert line is not None
    assert json.loads(line)["path"] == path
