"""Curves drawn with letters: sparklines and braille plots that keep every extreme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.-~=+*#"
_BRAILLE = 0x2800
# The bit of each dot of a cell, from above, left and right column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_DOT_ROWS, _DOT_COLUMNS = 4, 2


def sparkline(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The newest values in `width` letters, each the highest of its stretch; `!` where a value is
    no finite number."""
    bars = _ASCII_BARS if ascii_only else _BARS
    stretches = _stretches(values, width)
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "!" * len(stretches)
    low, high = min(finite), max(finite)
    span = high - low
    drawn = []
    for stretch in stretches:
        if not all(map(math.isfinite, stretch)):
            drawn.append("!")
        else:
            share = (max(stretch) - low) / span if span > 0 else 0.0
            drawn.append(bars[min(len(bars) - 1, int(share * len(bars)))])
    return "".join(drawn)


def _stretches(values: Sequence[float], width: int) -> list[Sequence[float]]:
    if len(values) <= width:
        return [[value] for value in values]
    edges = [len(values) * place // width for place in range(width + 1)]
    return [values[start:end] for start, end in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class Curve:
    """Points with x that does not fall."""

    xs: Sequence[float]
    ys: Sequence[float]


def plot(
    curve: Curve, width: int, height: int, *, log: bool = False, ascii_only: bool = False
) -> list[str]:
    """Rows of letters, `width` wide with the axis. Between the lowest and the highest value of
    each column all is drawn, so that no spike is lost."""
    points = [
        (x, math.log10(y) if log else y)
        for x, y in zip(curve.xs, curve.ys, strict=True)
        if math.isfinite(y) and math.isfinite(x) and (not log or y > 0)
    ]
    if not points:
        return []
    low, high = min(y for _, y in points), max(y for _, y in points)
    labels = _labels(low, high, height, log)
    margin = max(map(len, labels)) + 2
    columns = max(4, width - margin)
    dots = _columns(points, columns * (1 if ascii_only else _DOT_COLUMNS))
    rows = height * (1 if ascii_only else _DOT_ROWS)
    spans = [_rows(found, low, high, rows) if found else None for found in dots]
    draw = _ascii if ascii_only else _braille
    lines = draw(_joined(spans), columns, height)
    axis = "|" if ascii_only else "┤"
    return [
        f"{label:>{margin - 2}} {axis}{line}".rstrip()
        for label, line in zip(labels, lines, strict=True)
    ]


def _labels(low: float, high: float, height: int, log: bool) -> list[str]:
    """At the top, in the middle and at the bottom."""
    named = {0: high, height - 1: low}
    if height >= 5:
        named[(height - 1) // 2] = high - (high - low) * ((height - 1) // 2) / (height - 1)
    return [
        short(10 ** named[row] if log else named[row]) if row in named else ""
        for row in range(height)
    ]


def short(value: float) -> str:
    """As few digits as tell it apart."""
    return f"{value:.4g}"


def _columns(points: Sequence[tuple[float, float]], count: int) -> list[list[float] | None]:
    """The values that fall into each column of dots, in order."""
    first, last = points[0][0], points[-1][0]
    span = last - first
    found: list[list[float] | None] = [None] * count
    for x, y in points:
        place = 0 if span <= 0 else min(count - 1, int((x - first) / span * (count - 1) + 0.5))
        column = found[place]
        if column is None:
            found[place] = [y]
        else:
            column.append(y)
    return found


Span = tuple[int, int, int, int]  # highest row, lowest row, row of the first and of the last value


def _rows(values: Sequence[float], low: float, high: float, rows: int) -> Span:
    """Counted from above."""

    def row(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return round((1 - share) * (rows - 1))

    return row(max(values)), row(min(values)), row(values[0]), row(values[-1])


def _joined(spans: Sequence[Span | None]) -> list[tuple[int, int] | None]:
    """Neighbouring columns are joined by a line; gaps between points are bridged."""
    drawn = [(span[0], span[1]) if span else None for span in spans]
    before: tuple[int, Span] | None = None
    for place, span in enumerate(spans):
        if span is None:
            continue
        if before is not None:
            start, end = before[1][3], span[2]
            steps = place - before[0]
            for between in range(1, steps + 1):
                near = round(start + (end - start) * (between - 1) / steps)
                far = round(start + (end - start) * between / steps)
                here = drawn[before[0] + between]
                top, bottom = min(near, far), max(near, far)
                if here is not None:
                    top, bottom = min(top, here[0]), max(bottom, here[1])
                drawn[before[0] + between] = (top, bottom)
        before = (place, span)
    return drawn


def _braille(columns: Sequence[tuple[int, int] | None], width: int, height: int) -> list[str]:
    cells = [[0] * width for _ in range(height)]
    for x, span in enumerate(columns):
        if span is None:
            continue
        for y in range(span[0], span[1] + 1):
            cells[y // _DOT_ROWS][x // _DOT_COLUMNS] |= _DOTS[y % _DOT_ROWS][x % _DOT_COLUMNS]
    return ["".join(chr(_BRAILLE + cell) if cell else " " for cell in row) for row in cells]


def _ascii(columns: Sequence[tuple[int, int] | None], width: int, height: int) -> list[str]:
    cells = [[" "] * width for _ in range(height)]
    for x, span in enumerate(columns):
        if span is not None:
            for y in range(span[0], span[1] + 1):
                cells[y][x] = "*"
    return ["".join(row) for row in cells]
