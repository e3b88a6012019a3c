"""runyard logs: a job's log; following it never touches the job."""

from __future__ import annotations

import argparse
import sys

from runyard.cli import exit_codes, options, tables, wording
from runyard.cli.complaints import Complaint


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on until the job has ended"
    )
    parser.add_argument("-n", "--tail", type=int, metavar="N", help="the last N lines")
    parser.add_argument("--from", dest="start", type=int, metavar="LINE", help="from this line on")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N lines")
    parser.add_argument("--grep", metavar="TEXT", help="only lines with this")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--attempt", type=int, help="default: the newest")
    parser.add_argument("--raw", action="store_true", help="every byte as it was written")
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    chosen = {"rank": args.rank, "attempt": args.attempt}
    if args.follow:
        if args.json:
            raise Complaint("--follow and --json cannot be used together.")
        return _follow(args)
    if args.raw:
        return _raw(args)
    tail = args.tail if args.tail is not None or args.start is not None else None
    lines = client.logs(
        args.job, tail=tail, start=args.start, limit=args.limit, grep=args.grep, **chosen
    )
    if args.json:
        tables.print_json({"logs": lines})
        return 0
    for line in lines:
        sys.stdout.write(line + "\n")
    if not lines and sys.stderr.isatty():
        print(wording.say("no_log_yet", job=args.job), file=sys.stderr)
    return 0


def _raw(args: argparse.Namespace) -> int:
    client = options.client(args)
    offset = 0
    while True:
        data = client.log_bytes(
            args.job, offset=offset, length=1 << 20, rank=args.rank, attempt=args.attempt
        )
        if not data:
            return 0
        sys.stdout.buffer.write(data)
        offset += len(data)


def _follow(args: argparse.Namespace) -> int:
    from runyard.cli.live_view import LiveView
    from runyard.sdk.follower import Follower

    client = options.client(args)
    view = LiveView()
    job = client.job(args.job)
    try:
        if args.grep or args.tail is not None or args.rank is not None:
            chosen = {"rank": args.rank, "attempt": args.attempt}
            for line in client.follow_logs(job.id, tail=args.tail, grep=args.grep, **chosen):
                view.log(f"{line}\n".encode("utf-8", "surrogateescape"))
        else:
            newest = int((job.attempt or {}).get("number") or 1)
            Follower(client, view).follow(job, attempt=args.attempt or newest)
    except KeyboardInterrupt:
        view.left_running(job)
        return exit_codes.INTERRUPTED
    if job.ended:
        view.ended(job)
    return 0
