"""Tables and cards: whole into pipes, fitted and coloured into terminals."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from runyard.cli import formatting, wording

_COLOURS = {
    "completed": "32",
    "running": "36",
    "scheduled": "36",
    "failed": "31",
    "retrying": "33",
    "cancelling": "33",
    "cancelled": "35",
}
_GAP = "  "
_NARROWEST = 16


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, elastic: Sequence[int] = ()
) -> None:
    """`elastic` columns are the ones to shorten when the terminal is narrow."""
    width = terminal_width() if sys.stdout.isatty() else None
    for line in lines(headings, rows, elastic=elastic, width=width):
        print(line)


def lines(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    elastic: Sequence[int] = (),
    width: int | None = None,
) -> list[str]:
    """Columns two spaces apart; without a width nothing is shortened or coloured."""
    cells = [list(headings), *[[formatting.clean(cell) for cell in row] for row in rows]]
    widths = [max(map(formatting.columns, column)) for column in zip(*cells, strict=True)]
    if width is None:
        return [_line(row, widths).rstrip() for row in cells]
    _shrink(widths, elastic, width)
    return [_line(row, widths, width, heading=place == 0) for place, row in enumerate(cells)]


def terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _shrink(widths: list[int], elastic: Sequence[int], width: int) -> None:
    """Take from the widest elastic column until everything fits or none can give any more."""
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0 and elastic:
        widest = max(elastic, key=lambda place: widths[place])
        if widths[widest] <= _NARROWEST:
            return
        widths[widest] -= 1
        excess -= 1


def _line(
    row: Sequence[str], widths: Sequence[int], width: int | None = None, *, heading: bool = False
) -> str:
    parts = []
    left = sys.maxsize if width is None else width
    for cell, wide in zip(row, widths, strict=True):
        if left <= 0:
            break
        text = formatting.cut(cell, min(wide, left))
        pad = " " * (min(wide, left) - formatting.columns(text))
        parts.append((_paint(text, heading) if width is not None else text) + pad)
        left -= wide + len(_GAP)
    return _GAP.join(parts)


def _paint(text: str, heading: bool) -> str:
    if not coloured():
        return text
    if heading:
        return f"\x1b[1m{text}\x1b[0m"
    colour = next((code for word, code in _COLOURS.items() if wording.status(word) == text), None)
    return f"\x1b[{colour}m{text}\x1b[0m" if colour else text


def print_card(pairs: Sequence[tuple[str, str]]) -> None:
    """Label and value, one pair a line; pairs without a value are left out."""
    shown = [(label, value) for label, value in pairs if value not in ("", "-")]
    width = max((formatting.columns(label) for label, _ in shown), default=0)
    for label, value in shown:
        pad = " " * (width - formatting.columns(label))
        first, *more = value.split("\n")
        print(f"{dim(label)}{pad}  {first}")
        for line in more:
            print(" " * (width + 2) + line)


def coloured(stream: Any = None) -> bool:
    stream = stream or sys.stdout
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if coloured() else text


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if coloured() else text
