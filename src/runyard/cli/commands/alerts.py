"""runyard alerts: what somebody should know; say that it was seen, or that it is over."""

from __future__ import annotations

import argparse

from runyard.cli import alert_rows, answers, exit_codes, options, tables, wording
from runyard.cli.complaints import Complaint


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("ls", "list", "ack", "close"), default="ls")
    parser.add_argument("alerts", metavar="ID", nargs="*", help="for ack and close")
    parser.add_argument("-a", "--all", action="store_true", help="closed ones too")
    parser.add_argument("--job", help="only those of this job")
    parser.add_argument("--level", choices=("warning", "error", "critical"))
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.action in ("ack", "close"):
        act = client.acknowledge_alert if args.action == "ack" else client.close_alert
        changed = [act(number) for number in _numbers(args)]
        if args.json:
            tables.print_json(changed)
            return 0
        key = "alert_acknowledged" if args.action == "ack" else "alert_closed"
        for alert in changed:
            print(wording.say(key, alert=alert["id"]))
        return 0
    status = None if args.all else ("open", "acknowledged")
    found = client.alerts(status=status, level=args.level, job=args.job)
    empty = wording.say("no_alerts")
    return answers.print_all(args, found, "id", alert_rows.print_alerts, empty=empty)


def _numbers(args: argparse.Namespace) -> list[int]:
    words = options.job_ids(args.alerts)
    if not words or not all(word.isdigit() for word in words):
        message = f"Which alert? As in: runyard alerts {args.action} 3"
        raise Complaint(message, hint="See 'runyard alerts'.", code=exit_codes.USAGE)
    return [int(word) for word in words]
