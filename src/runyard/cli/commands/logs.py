"""runyard logs: a job's log; following it never touches the job."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from runyard.cli import exit_codes, options, tables, wording
from runyard.cli.complaints import Complaint
from runyard.sdk.client import Client
from runyard.sdk.job import Job

if TYPE_CHECKING:
    from runyard.cli.live_view import LiveView

_CHUNK = 1 << 20
_MOST = 100_000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Without -n, --from, --limit or --grep: every byte as it was written."
    parser.add_argument("job", metavar="JOB", help="id (job-... or a number)")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on until the job has ended"
    )
    parser.add_argument("-n", "--tail", type=int, metavar="N", help="the last N lines")
    parser.add_argument("--from", dest="start", type=int, metavar="LINE", help="from this line on")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N lines")
    parser.add_argument("--grep", metavar="TEXT", help="only lines with this")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--service", metavar="NAME", help="the log of this service of the job")
    parser.add_argument("--attempt", type=int, help="default: the newest")
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.follow:
        if args.json:
            raise Complaint("--follow and --json cannot be used together.")
        return _follow(args, client)
    chosen = (args.tail, args.start, args.limit, args.grep)
    if not args.json and all(value is None for value in chosen):
        return _whole(args, client)
    start = 0 if args.json and args.tail is None and args.start is None else args.start
    limit = _MOST if args.limit is None and start is not None else args.limit
    tail = _MOST if args.grep and args.tail is None and start is None else args.tail
    lines = client.logs(
        args.job,
        tail=tail,
        start=start,
        limit=limit,
        grep=args.grep,
        rank=args.rank,
        attempt=args.attempt,
        service=args.service,
    )
    if args.json:
        tables.print_json({"logs": lines})
    else:
        sys.stdout.writelines(line + "\n" for line in lines)
    return 0


def _whole(args: argparse.Namespace, client: Client) -> int:
    """Every byte as it was written."""
    offset, size = 0, 0
    while True:
        data, size = client.log_part(
            args.job,
            offset=offset,
            length=_CHUNK,
            rank=args.rank,
            attempt=args.attempt,
            service=args.service,
        )
        sys.stdout.buffer.write(data)
        offset += _CHUNK
        if offset >= size:
            break
    if not size and sys.stderr.isatty():
        print(wording.say("no_log_yet", job=args.job), file=sys.stderr)
    return 0


def _follow(args: argparse.Namespace, client: Client) -> int:
    from runyard.cli import aside
    from runyard.cli.live_view import LiveView

    view = LiveView()
    job = client.job(args.job)
    try:
        aside.done(lambda: _copy(args, client, view, job))
    except KeyboardInterrupt:
        view.left_running(job)
        view.close()
        return exit_codes.INTERRUPTED
    view.ended(job.refresh())
    return 0


def _copy(args: argparse.Namespace, client: Client, view: LiveView, job: Job) -> None:
    from runyard.sdk.follower import Follower

    chosen = (args.tail, args.rank, args.service)
    if args.grep or any(value is not None for value in chosen):
        lines = client.follow_logs(
            job.id,
            tail=args.tail,
            grep=args.grep,
            rank=args.rank,
            attempt=args.attempt,
            service=args.service,
        )
        for line in lines:
            view.log(f"{line}\n".encode("utf-8", "replace"))
    else:
        newest = int((job.attempt or {}).get("number") or 1)
        Follower(client, view).follow(job, attempt=args.attempt or newest)
