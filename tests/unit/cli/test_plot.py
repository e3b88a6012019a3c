"""Curves drawn with letters."""

import math

import pytest

from runyard.cli import metric_plot, plot
from runyard.cli.metric_plot import Series


def dots(line):
    return sum(bin(ord(letter) - 0x2800).count("1") for letter in line if ord(letter) >= 0x2800)


def test_sparkline_keeps_the_highest_of_each_stretch():
    values = [0.0] * 100
    values[37] = 9.0
    drawn = plot.sparkline(values, 10)
    assert (len(drawn), drawn.count("█"), drawn[3]) == (10, 1, "█")


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([1.0], "▁"),
        ([1.0, 1.0, 1.0], "▁▁▁"),
        ([0.0, 1.0], "▁█"),
        ([0.0, math.nan, 1.0], "▁!█"),
        ([math.inf, -math.inf], "!!"),
    ],
)
def test_sparklines(values, drawn):
    assert plot.sparkline(values, 10) == drawn


def test_sparkline_without_unicode():
    assert plot.sparkline([0, 1, 2, 3], 10, ascii_only=True).isascii()


def test_a_spike_of_one_point_in_a_million_is_drawn():
    """The lowest and the highest are always seen; averages would hide them."""
    ys = [1.0] * 20_000
    ys[12_345] = 50.0
    drawn = plot.plot(plot.Curve(range(len(ys)), ys), 60, 8)
    assert len(drawn) == 8
    assert "50" in drawn[0]
    assert dots(drawn[0]) >= 1
    assert all(len(line) <= 60 for line in drawn)


def test_points_are_joined_over_gaps():
    drawn = plot.plot(plot.Curve([0, 100], [0.0, 1.0]), 40, 6)
    columns = [{line[place] for line in drawn if place < len(line)} for place in range(8, 38)]
    assert all(any(ord(letter) > 0x2800 for letter in column) for column in columns)


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0, 1e300, 1e-300])
def test_a_flat_line_and_a_single_point(value):
    assert any(dots(line) for line in plot.plot(plot.Curve([1, 2], [value, value]), 40, 5))
    assert any(dots(line) for line in plot.plot(plot.Curve([7], [value]), 40, 5))


def test_what_cannot_be_drawn_is_left_out():
    assert plot.plot(plot.Curve([1, 2], [math.nan, math.inf]), 40, 5) == []
    assert plot.plot(plot.Curve([], []), 40, 5) == []
    assert plot.plot(plot.Curve([1, 2], [0.0, -1.0]), 40, 5, log=True) == []
    drawn = plot.plot(plot.Curve([1, 2, 3], [0.001, 0.0, 1000.0]), 40, 7, log=True)
    assert "1000" in drawn[0]
    assert "0.001" in drawn[-1]
    assert drawn[3].strip().startswith("1 ")


def test_without_unicode():
    drawn = plot.plot(plot.Curve([1, 2, 3], [1.0, 3.0, 2.0]), 40, 5, ascii_only=True)
    assert all(line.isascii() for line in drawn)
    assert any("*" in line for line in drawn)


def series(values, steps=None):
    times = [1_800_000_000.0 + place for place in range(len(values))]
    return Series(steps or list(range(len(values))), times, list(values))


def test_figures_and_axes():
    head, *rest = metric_plot.lines(
        "loss", series([3.0, 1.0, 2.0]), 60, 5, log=False, ascii_only=False
    )
    assert head.split("  ") == [
        "loss",
        "last 2",
        "lowest 1 at 1",
        "highest 3 at 0",
        "3 points",
    ]
    assert rest[-1].split() == ["0", "2"]


def test_nan_is_told_in_words():
    found = series([1.0, math.nan, math.inf, 2.0])
    drawn = metric_plot.lines("loss", found, 60, 5, log=False, ascii_only=False)
    assert "2 values are NaN or infinite, the first at 1" in drawn[-1]
    drawn = metric_plot.lines("x", series([math.nan]), 60, 5, log=True, ascii_only=False)
    assert len(drawn) == 2


def test_names_are_chosen():
    names = ["zeta", "loss", "system.cpu_percent", "learning_rate", "epoch"]
    assert metric_plot.chosen(names, []) == ["loss", "learning_rate", "zeta"]
    assert metric_plot.chosen(names, ["lr", "Train Loss", "nothing"]) == ["learning_rate", "loss"]
    assert metric_plot.chosen(["gpu.util"], []) == ["gpu.util"]


def test_points_that_are_known_are_not_taken_twice():
    found = series([1.0, 2.0])
    more = {"steps": [1, 2], "times": [found.times[1] + 0.0001, 5.0], "values": [2.0, "NaN"]}
    [new] = found.add(more, 2)
    assert new[:2] == (2, 5.0)
    assert math.isnan(new[2])
    assert found.steps == [1, 2]
