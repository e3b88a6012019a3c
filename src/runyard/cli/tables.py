"""Tables: plain text into pipes, rich's into terminals (rich is loaded only then)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from runyard.cli import formatting

STYLES = {
    "completed": "green",
    "running": "cyan",
    "scheduled": "cyan",
    "failed": "red",
    "retrying": "yellow",
    "cancelling": "yellow",
    "cancelled": "magenta",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
}


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, elastic: Sequence[int] = ()
) -> None:
    """`elastic` columns are the ones to shorten when the terminal is narrow."""
    cleaned = [[formatting.clean(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(rich_table(headings, cleaned, elastic=elastic))
        return
    for row in plain(headings, cleaned):
        print(row)


def plain(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns two spaces apart, nothing shortened."""
    everything = [list(headings), *map(list, rows)]
    widths = [
        max(formatting.columns(cell) for cell in column)
        for column in zip(*everything, strict=True)
    ]
    lines = []
    for row in everything:
        padded = [
            cell + " " * (width - formatting.columns(cell))
            for cell, width in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def rich_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, elastic: Sequence[int] = ()
) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        soft = place in elastic
        table.add_column(
            heading, no_wrap=True, overflow="ellipsis" if soft else "fold", ratio=None
        )
        if not soft:
            table.columns[-1].min_width = max(
                [formatting.columns(row[place]) for row in rows] + [formatting.columns(heading)]
            )
    for row in rows:
        table.add_row(*[Text(cell, style=STYLES.get(cell, "")) for cell in row])
    return table


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
