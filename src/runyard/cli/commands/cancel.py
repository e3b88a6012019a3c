"""runyard cancel: end jobs, and wait for the proof that nothing of them is left."""

from __future__ import annotations

import argparse
import time
from typing import Any

from runyard.cli import amounts, exit_codes, options, receipts, tables, wording
from runyard.cli.complaints import Complaint, tell
from runyard.sdk import errors
from runyard.sdk.client import Client

_ACTIVE = ["pending", "scheduled", "running", "retrying", "cancelling"]
_BEYOND_GRACE_S = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_jobs(parser, required=False)
    parser.add_argument("--now", action="store_true", help="kill without grace")
    parser.add_argument("--all", action="store_true", help="every job that has not ended")
    parser.add_argument("--name", help="every job with this name that has not ended")
    parser.add_argument("--label", action="append", default=[], metavar="K=V")
    parser.add_argument("--owner", help="with --all: only this person's")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="do not ask before many are ended"
    )
    parser.add_argument("--no-wait", action="store_true", help="ask for the end and leave")
    parser.add_argument("--wait", metavar="SPAN", help="how long (default: grace + 10 s)")
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    ids = options.job_ids(args.jobs) + _chosen(args, client)
    if not ids:
        if args.jobs or args.all or args.name or args.label:
            print(wording.say("nothing_matches"))
            return exit_codes.OK
        raise Complaint("Which job?", hint="Name ids, or use --all, --name or --label.")
    answers, worst = _cancel_all(args, client, list(dict.fromkeys(ids)))
    if args.json:
        tables.print_json(answers[0] if len(ids) == 1 and answers else answers)
    return worst


def _chosen(args: argparse.Namespace, client: Client) -> list[str]:
    if not (args.all or args.name or args.label):
        return []
    labels = dict(pair.split("=", 1) for pair in args.label if "=" in pair)
    jobs = client.jobs(status=_ACTIVE, owner=args.owner, text=args.name, labels=labels)
    ids = [job.id for job in jobs if not args.name or job.name == args.name]
    if len(ids) > 1 and not args.yes:
        _confirm(len(ids))
    return ids


def _confirm(count: int) -> None:
    import sys

    if not sys.stdin.isatty():
        return  # a script that says --all means it
    print(wording.say("confirm_cancel", count=count), end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Complaint(wording.say("nothing_done"), code=exit_codes.FAILED)


def _cancel_all(
    args: argparse.Namespace, client: Client, ids: list[str]
) -> tuple[list[dict[str, Any]], int]:
    """Ask for every end first, so that they go in parallel; then wait for each proof."""
    worst, asked = exit_codes.OK, []
    ask = client.force_kill if args.now else client.cancel
    for job_id in ids:
        try:
            asked.append({"job_id": job_id, **ask(job_id)})
        except errors.AlreadyEnded as ended:
            # Nothing lives, which is what was wanted; it only was not us who ended it.
            asked.append({"job_id": job_id, "status": ended.params.get("status", "ended")})
        except errors.ServerUnreachable:
            raise
        except errors.RunyardError as refused:
            worst = max(worst, tell(refused) or exit_codes.FAILED)
    for answer in asked:
        if not args.no_wait:
            _wait(args, client, answer)
        if answer.get("status") == "cancelling" and not args.no_wait:
            worst = worst or exit_codes.NOT_YET
        if args.quiet:
            print(answer["job_id"])
        elif not args.json:
            print(_told(answer))
    return asked, worst


def _wait(args: argparse.Namespace, client: Client, answer: dict[str, Any]) -> None:
    if answer.get("status") != "cancelling":
        return
    if args.wait:
        patience_s = amounts.seconds(args.wait, "--wait")
    else:
        grace_s = client.get(answer["job_id"]).get("grace_s")
        patience_s = (40.0 if grace_s is None else float(grace_s)) + _BEYOND_GRACE_S
    deadline = time.monotonic() + patience_s
    try:
        client.wait(answer["job_id"], timeout=max(0.0, deadline - time.monotonic()))
    except errors.WaitTimeout:
        return
    answer["status"] = client.get(answer["job_id"])["status"]
    try:
        answer["receipt"] = client.receipt(answer["job_id"])
    except errors.NotFound:
        answer["receipt"] = None


def _told(answer: dict[str, Any]) -> str:
    if answer.get("status") in ("completed", "failed"):
        return wording.say(
            "already", job=answer["job_id"], status=wording.status(answer["status"])
        )
    return receipts.summary(answer["job_id"], answer)
