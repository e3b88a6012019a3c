"""Commands that ask one small thing of each job named: hold, release, retry."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from runyard.cli import exit_codes, options, tables, wording
from runyard.cli.complaints import tell
from runyard.sdk import errors
from runyard.sdk.job import Job


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_jobs(parser)
    options.add_read(parser, ids=True)


def each(args: argparse.Namespace, change: Callable[[str], Job], told: str) -> int:
    """One that is refused does not keep the others from being asked; the worst code counts."""
    worst, changed = exit_codes.OK, []
    for job_id in options.job_ids(args.jobs):
        try:
            job = change(job_id)
        except errors.ServerUnreachable:
            raise
        except errors.RunyardError as refused:
            worst = max(worst, tell(refused) or exit_codes.FAILED)
            continue
        changed.append(job.data)
        if args.quiet:
            print(job.id)
        elif not args.json:
            print(wording.say(told, job=job.id))
    if args.json:
        tables.print_json(changed[0] if len(changed) == 1 else changed)
    return worst
