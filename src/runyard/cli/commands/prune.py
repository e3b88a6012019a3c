"""runyard prune: forget jobs that ended long ago, with their logs. Outputs are never touched."""

from __future__ import annotations

import argparse
import sys
import time

from runyard.cli import amounts, exit_codes, formatting, options, tables, wording
from runyard.cli.complaints import Complaint
from runyard.sdk import errors
from runyard.sdk.job import Job


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older-than", default="30d", metavar="SPAN", help="ended before (30d)")
    parser.add_argument(
        "-s", "--status", action="append", choices=("completed", "failed", "cancelled"), default=[]
    )
    parser.add_argument("--owner")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say which")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    before = time.time() - amounts.seconds(args.older_than, "--older-than")
    wanted = args.status or ["completed", "failed", "cancelled"]
    old = [job for job in client.jobs(status=wanted, owner=args.owner) if _ended_at(job) < before]
    if args.dry_run or not old:
        return _tell(args, old, "would_prune" if args.dry_run else "pruned")
    if not args.yes:
        _confirm(len(old))
    gone = []
    for job in old:
        try:
            client.delete(job.id)
        except (errors.NotFound, errors.NotEnded):
            continue  # somebody else forgot it, or ran it again, meanwhile
        gone.append(job)
    return _tell(args, gone, "pruned")


def _ended_at(job: Job) -> float:
    when = job.data.get("completed_at") or job.data.get("submitted_at")
    return formatting.epoch(when) or time.time()


def _confirm(count: int) -> None:
    if not sys.stdin.isatty():
        raise Complaint(
            "This deletes records and logs.", hint="Say --yes, or look with --dry-run."
        )
    print(wording.say("confirm_prune", count=count), end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Complaint(wording.say("nothing_done"), code=exit_codes.FAILED)


def _tell(args: argparse.Namespace, jobs: list[Job], key: str) -> int:
    if args.json:
        tables.print_json({"dry_run": args.dry_run, "jobs": [job.id for job in jobs]})
        return 0
    if args.quiet or args.dry_run:
        for job in jobs:
            print(job.id)
    if not args.quiet:
        print(wording.say(key, count=len(jobs)), file=sys.stderr if args.dry_run else sys.stdout)
    return 0
