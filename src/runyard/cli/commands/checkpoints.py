"""runyard checkpoints: what a job has saved of itself, and whether it can be gone on from."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import answers, formatting, options, tables, wording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="a job's id")
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    found = options.client(args).checkpoints(args.job)
    empty = wording.say("no_checkpoints", job=args.job)
    return answers.print_all(args, found, "path", _show, empty=empty)


def _show(found: list[dict[str, Any]]) -> None:
    headings = ("STEP", "VERDICT", "SIZE", "SAVED", "ATTEMPT", "KIND", "PATH")
    tables.print_table(headings, [_row(one) for one in found], elastic=(6,))


def _row(one: dict[str, Any]) -> list[str]:
    why = one.get("why") or {}
    verdict = str(one.get("verdict"))
    if why and verdict != "good":
        verdict = f"{verdict}: {why.get('code')}"
    return [
        "-" if one.get("step") is None else str(one["step"]),
        formatting.clean(verdict),
        formatting.size(one.get("size_bytes") or 0),
        formatting.clock(one.get("saved_at")),
        str(one.get("attempt")),
        formatting.clean(str(one.get("family"))),
        formatting.clean(str(one.get("path"))),
    ]
