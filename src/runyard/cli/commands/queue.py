"""runyard queue: what runs, what waits and why; pause and start dispatching."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import formatting, job_rows, options, tables, wording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "pause", "stop", "start", "resume"),
        default="show",
        help="pause (stop): start nothing new; start (resume): go on",
    )
    parser.add_argument("-n", "--limit", type=int, default=50, help="so many waiting jobs")
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.action in ("pause", "stop"):
        client.stop_queue()
    elif args.action in ("start", "resume"):
        client.start_queue()
    if args.action != "show" and not args.json:
        paused = args.action in ("pause", "stop")
        print(wording.say("queue_paused" if paused else "queue_started"))
        return 0
    status = client.queue_status(limit=args.limit)
    if args.json:
        tables.print_json(status)
    elif args.quiet:
        for job in status.get("waiting") or ():
            print(job["job_id"])
    else:
        _print(status)
    return 0


def _print(status: dict[str, Any]) -> None:
    running, waiting = status.get("running") or [], status.get("waiting") or []
    if status.get("dispatching") is False:
        print(wording.say("queue_paused"))
    for gate in status.get("gates") or ():
        if gate.get("closed"):
            params = {"gate": gate.get("name"), **gate}
            print(wording.reason({"code": "gate", "params": params}))
    counts = status.get("counts") or {}
    waiting_total = int(counts.get("pending") or 0) + int(counts.get("retrying") or 0)
    print(
        wording.say(
            "queue_counts",
            running=len(running),
            limit=status.get("max_concurrent"),
            waiting=max(waiting_total, len(waiting)),
        )
    )
    rows = [["-", *_row(job)] for job in running]
    rows += [[_place(job, number), *_row(job)] for number, job in enumerate(waiting, 1)]
    if rows:
        headings = ("PLACE", "ID", "NAME", "STATUS", "WHY", "PRIORITY", "RESOURCES", "AGE")
        tables.print_table(headings, rows, elastic=(2, 4))


def _place(job: dict[str, Any], number: int) -> str:
    return str((job.get("wait") or {}).get("position") or number)


def _row(job: dict[str, Any]) -> list[str]:
    return [
        str(job.get("job_id")),
        str(job.get("name") or ""),
        wording.status(str(job.get("status"))),
        job_rows.why(job) or "-",
        str(job.get("priority") or ""),
        formatting.resources(job),
        formatting.age(job.get("queued_at") or job.get("submitted_at")),
    ]
