"""runyard run: submit a job and stay with it, as if it ran in this terminal."""

from __future__ import annotations

import argparse

from runyard.cli import job_flags, options
from runyard.cli.complaints import Complaint

TAKES_COMMAND = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard run [-d] [-f FILE] [OPTIONS] [--] COMMAND..."
    parser.epilog = (
        "The log goes to stdout as it is, everything else to stderr. The exit code is the job's\n"
        "(128 + N when signal N ended it, 124 timed out, 143 cancelled). Ctrl-C and SIGTERM\n"
        "cancel the job, twice kills it; when this terminal or the server goes away it runs on."
    )
    parser.add_argument("-d", "--detach", action="store_true", help="submit, print the id, leave")
    parser.add_argument("-q", "--quiet", action="store_true", help="with -d: print the id only")
    parser.add_argument("--json", action="store_true", help="with -d: print the answer as JSON")
    parser.add_argument(
        "--local-service",
        metavar="NAME=COMMAND",
        action="append",
        default=[],
        help="run this here while the job runs; {port} in it is replaced by its port",
    )
    job_flags.add(parser)
    options.add_target(parser)


def run(args: argparse.Namespace) -> int:
    jobs = job_flags.jobs(args)
    if args.detach:
        from runyard.cli.commands import submit

        return submit.submit(args, jobs)
    if len(jobs) > 1:
        raise Complaint(
            f"These are {len(jobs)} jobs, and run follows one.",
            hint="Use 'runyard run -d', then 'runyard wait' or 'runyard ls --watch'.",
        )
    return follow_new(args, jobs[0])


def follow_new(args: argparse.Namespace, job: dict[str, object]) -> int:
    """Submit, follow, and end with the job's exit code."""
    from runyard.cli import local_services
    from runyard.cli.live_view import LiveView
    from runyard.sdk.session import Session

    view = LiveView()
    session = Session(
        options.client(args),
        job,
        local_services=local_services.taken(args, job),
        idempotency_key=args.idempotency_key,
        view=view,
    )
    try:
        with session:
            session.follow()
    except (KeyboardInterrupt, SystemExit):
        if session.signal is None:
            raise
        return 128 + session.signal
    view.ended(session.job)
    return session.job.exit_code
