"""runyard submit: hand a job over and leave; it is never cancelled by what happens here."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import job_flags, local_services, options
from runyard.cli.complaints import Complaint
from runyard.sdk import errors
from runyard.sdk.client import Client
from runyard.sdk.job import Job

TAKES_COMMAND = True
_MOST_BYTES = 6_000_000
_ANSWER = ("job_id", "id", "status", "submitted_at", "warnings", "suggestion")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard submit [-f FILE] [OPTIONS] [--] COMMAND..."
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="print ids only")
    job_flags.add(parser)
    options.add_target(parser)


def run(args: argparse.Namespace) -> int:
    return submit(args, job_flags.jobs(args))


def submit(args: argparse.Namespace, jobs: list[dict[str, Any]]) -> int:
    local_services.refuse(args, jobs)
    _refuse_leases(jobs)
    client = options.client(args)
    if len(jobs) == 1:
        made = [client.submit(jobs[0], idempotency_key=args.idempotency_key)]
    else:
        made = _submit_many(client, jobs, args.idempotency_key)
    if args.json:
        from runyard.cli import tables

        answers = [{name: job.data.get(name) for name in _ANSWER} for job in made]
        tables.print_json(answers[0] if len(jobs) == 1 else answers)
        return 0
    for job in made:
        print(job.id)
    if not args.quiet:
        warn(made)
        suggest(made)
    return 0


def _refuse_leases(jobs: list[dict[str, Any]]) -> None:
    """This command leaves at once: nobody would renew them, and the jobs would be cancelled."""
    if any(job.get("lease_s") and job.get("on_lease_lost") != "keep" for job in jobs):
        raise Complaint(
            "A lease ends the job when its client goes, and this command leaves at once.",
            hint="Use 'runyard run' without -d, which renews it. A program of your own that "
            "submits by the API renews it with POST /jobs/{id}/lease.",
        )


def _submit_many(client: Client, jobs: list[dict[str, Any]], key: str | None) -> list[Job]:
    """As many at once as a server takes; each request is accepted whole or not at all."""
    import json

    most = max(1, _MOST_BYTES // max(len(json.dumps(job)) for job in jobs))
    made: list[Job] = []
    for number, first in enumerate(range(0, len(jobs), most)):
        part_key = f"{key}-{number}" if key and number else key
        try:
            made += client.submit_many(jobs[first : first + most], idempotency_key=part_key)
        except errors.RunyardError as refused:
            if made:
                refused.message += f" {len(made)} of {len(jobs)} jobs were accepted before."
            raise
    return made


def suggest(made: list[Job]) -> None:
    """What earlier runs of the same jobs used, said once."""
    found = [job.data["suggestion"] for job in made if job.data.get("suggestion")]
    if not found:
        return
    import sys

    from runyard.cli import suggestions

    for text in dict.fromkeys(map(suggestions.told, found)):
        print(f"runyard: {text}", file=sys.stderr)


def warn(made: list[Job]) -> None:
    """What the server accepted but will not act on, said once."""
    found = [warning for job in made for warning in job.data.get("warnings") or ()]
    if not found:
        return
    import sys

    from runyard.cli import wording

    for text in dict.fromkeys(map(wording.warning, found)):
        print(f"runyard: {text}", file=sys.stderr)
