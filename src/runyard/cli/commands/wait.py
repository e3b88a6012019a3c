"""runyard wait: until jobs have ended; exits with the job's code (the first that is not 0)."""

from __future__ import annotations

import argparse
import sys
import time

from runyard.cli import amounts, aside, options, tables
from runyard.cli.live_view import ended_line
from runyard.sdk.client import Client
from runyard.sdk.follower import Follower, View
from runyard.sdk.job import Job


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_jobs(parser)
    parser.add_argument("--timeout", metavar="SPAN", help="give up after (exit code 6)")
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    limit = amounts.seconds(args.timeout, "--timeout") if args.timeout else None
    deadline = None if limit is None else time.monotonic() + limit
    jobs: list[Job] = [client.job(job_id) for job_id in options.job_ids(args.jobs)]
    for job in jobs:
        aside.done(lambda waited=job: _wait(client, waited, deadline))  # type: ignore[misc]
        if not args.quiet and not args.json:
            print(ended_line(job.data), file=sys.stderr)
    if args.json:
        tables.print_json(jobs[0].data if len(jobs) == 1 else [job.data for job in jobs])
    return next((job.exit_code for job in jobs if job.exit_code), 0)


def _wait(client: Client, job: Job, deadline: float | None) -> None:
    if deadline is None:
        Follower(client, View()).wait(job)
    else:
        job.wait(timeout=max(0.0, deadline - time.monotonic()))
