"""How a command answers: JSON for programs, ids for pipes, words and tables for people."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from runyard.cli import tables

Item = dict[str, Any]


def print_all(
    args: argparse.Namespace,
    found: list[Item],
    id_name: str,
    show: Callable[[list[Item]], None],
    *,
    empty: str = "",
) -> int:
    """`empty` is said where nothing was found; without it the headings alone are shown."""
    if args.json:
        tables.print_json(found)
    elif args.quiet:
        for one in found:
            print(one[id_name])
    elif not found and empty:
        print(empty)
    else:
        show(found)
    return 0


def print_one(args: argparse.Namespace, answer: Item, words: str, *, id_name: str = "") -> int:
    """`id_name` of a command that has `--quiet`."""
    if args.json:
        tables.print_json(answer)
    elif id_name and getattr(args, "quiet", False):
        print(answer[id_name])
    else:
        print(words)
    return 0
