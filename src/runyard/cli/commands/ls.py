"""runyard ls: the list of jobs, once or live."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import Any

from runyard.cli import amounts, answers, job_rows, options, tables, wording
from runyard.cli.complaints import Complaint
from runyard.sdk import errors
from runyard.sdk.client import Client

STATUSES = (
    "pending",
    "scheduled",
    "running",
    "retrying",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
)
_EVERY_S = 1.0
_PAGE = 200


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", help="part of a name, description or id")
    parser.add_argument("-s", "--status", action="append", default=[], metavar="STATUS")
    parser.add_argument("--active", action="store_true", help="only those that have not ended")
    parser.add_argument("--owner")
    parser.add_argument("--type", dest="job_type")
    parser.add_argument("--label", action="append", default=[], metavar="K=V")
    parser.add_argument("--since", metavar="SPAN", help="submitted in the last 2h, 7d ...")
    parser.add_argument("-n", "--limit", type=int, default=50, help="newest so many (0: all)")
    parser.add_argument("-w", "--watch", action="store_true", help="stay and update")
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client, query = options.client(args), _query(args)
    if args.watch and not args.json and not args.quiet:
        return _watch(client, query, args.limit)
    rows, total = fetch(client, query, args.limit)

    def show(rows: list[dict[str, Any]]) -> None:
        tables.print_table(job_rows.HEADINGS, job_rows.rows(rows), elastic=job_rows.ELASTIC)
        if total > len(rows):
            print(tables.dim(wording.say("more_jobs", more=total - len(rows), total=total)))

    empty = wording.say("nothing_matches" if query else "no_jobs")
    return answers.print_all(args, rows, "job_id", show, empty=empty)


def fetch(client: Client, query: dict[str, Any], limit: int) -> tuple[list[dict[str, Any]], int]:
    """The newest `limit` jobs (0: all) and how many there are."""
    asked, total = dict(query), 0
    rows: list[dict[str, Any]] = []
    while True:
        asked["limit"] = min(_PAGE, limit - len(rows)) if limit else _PAGE
        page, cursor, count = client.page(asked)
        rows += page
        total = total or count or len(rows)
        if not cursor or not page or (limit and len(rows) >= limit):
            return rows, max(total, len(rows))
        asked["cursor"] = cursor


def _query(args: argparse.Namespace) -> dict[str, Any]:
    wanted = [word for text in args.status for word in text.split(",")]
    for word in wanted:
        if word not in STATUSES:
            raise Complaint(f"'{word}' is no status.", hint=f"One of: {', '.join(STATUSES)}.")
    if args.active:
        wanted += [word for word in STATUSES[:5] if word not in wanted]
    query: dict[str, Any] = {
        "status": wanted,
        "type": args.job_type,
        "owner": args.owner,
        "q": args.text,
        "label": args.label,
    }
    if args.since:
        query["since"] = f"{time.time() - amounts.seconds(args.since, '--since'):.3f}"
    return {name: value for name, value in query.items() if value}


def _watch(client: Client, query: dict[str, Any], limit: int) -> int:
    """On the terminal's other screen, so that what was there before comes back."""
    if not sys.stdout.isatty():
        raise Complaint("--watch needs a terminal.", hint="For programs: --json, again and again.")
    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    try:
        while True:
            shown = "".join(f"{line}\x1b[K\n" for line in _screen(client, query, limit))
            sys.stdout.write(f"\x1b[H{shown}\x1b[J")
            sys.stdout.flush()
            time.sleep(_EVERY_S)
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


def _screen(client: Client, query: dict[str, Any], limit: int) -> list[str]:
    size = shutil.get_terminal_size()
    most = max(1, size.lines - 4)
    stamp = tables.dim(f"{client.url}  {time.strftime('%H:%M:%S')}")
    try:
        rows, total = fetch(client, query, min(limit or most, most))
    except errors.ServerUnreachable as lost:
        return [stamp, wording.error(lost.error_code, lost.params, lost.message)]
    table = tables.lines(
        job_rows.HEADINGS, job_rows.rows(rows), elastic=job_rows.ELASTIC, width=size.columns
    )
    more = wording.say("more_jobs", more=total - len(rows), total=total)
    return [stamp, *table, *([tables.dim(more)] if total > len(rows) else [])]
