"""runyard notify: who is told of everybody's jobs; try it, and see what was told."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from runyard.cli import answers, exit_codes, formatting, options, tables, wording
from runyard.cli.complaints import Complaint
from runyard.sdk.client import Client

TYPES = ("webhook", "feishu", "apprise")
EVENTS = ("completed", "failed", "cancelled", "repaired", "alert")
_FEISHU = ("open.feishu.cn/", "open.larksuite.com/")


def configure(parser: argparse.ArgumentParser) -> None:
    words = "ls | add NAME ADDRESS | rm TARGET | test TARGET | deliveries"
    actions = parser.add_subparsers(dest="action", metavar=words)
    listing = actions.add_parser("ls", aliases=["list"], help="who is told of everybody's jobs")
    options.add_read(listing, ids=True)
    add = actions.add_parser("add", help="tell somebody of everybody's jobs")
    add.add_argument("name")
    add.add_argument("address", help="https://..., or an apprise address such as slack://...")
    add.add_argument("--type", choices=TYPES, help="found from the address by default")
    add.add_argument("--secret", help="what is sent is signed with it; - reads it from stdin")
    add.add_argument(
        "--event", dest="events", choices=EVENTS, action="append", help="several times; the ends"
    )
    add.add_argument("--off", action="store_true", help="keep it, but tell it nothing yet")
    options.add_read(add, ids=True)
    remove = actions.add_parser("rm", aliases=["delete"], help="tell it nothing more")
    remove.add_argument("target", help="name or number")
    options.add_read(remove)
    test = actions.add_parser("test", help="send something and see whether it arrives")
    test.add_argument("target", help="name or number, or an address that is not kept")
    test.add_argument("--type", choices=TYPES, help="of an address that is not kept")
    test.add_argument("--secret", help="of an address that is not kept; - reads it from stdin")
    options.add_read(test)
    told = actions.add_parser("deliveries", help="what was told, and what still has to be")
    told.add_argument("--status", choices=("waiting", "sending", "sent", "given_up"))
    told.add_argument("--job", help="only those of this job")
    told.add_argument("-n", "--limit", type=int, default=50)
    options.add_read(told, ids=True)
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.action == "add":
        return _add(args, client)
    if args.action in ("rm", "delete"):
        target = _found(client, args.target)
        client.remove_notification_target(target["id"])
        print(wording.say("target_removed", target=target["name"]))
        return 0
    if args.action == "test":
        return _test(args, client)
    if args.action == "deliveries":
        found = client.deliveries(status=args.status, job=args.job, limit=args.limit)
        empty = wording.say("no_deliveries")
        return answers.print_all(args, found, "delivery", _show_deliveries, empty=empty)
    empty = wording.say("no_targets")
    return answers.print_all(args, client.notification_targets(), "id", _show_targets, empty=empty)


def _add(args: argparse.Namespace, client: Client) -> int:
    made = client.add_notification_target(
        args.name,
        args.address,
        type=args.type or _type_of(args.address),
        secret=_secret(args),
        events=args.events,
        enabled=not args.off,
    )
    words = wording.say("target_added", target=made["name"], events=", ".join(made["events"]))
    return answers.print_one(args, made, words, id_name="id")


def _test(args: argparse.Namespace, client: Client) -> int:
    if "://" in args.target:
        kind = args.type or _type_of(args.target)
        told = client.test_notification(args.target, type=kind, secret=_secret(args))
    else:
        told = client.test_notification_target(_found(client, args.target)["id"])
    sent = told["status"] == "sent"
    if args.json:
        tables.print_json(told)
    elif sent:
        print(wording.say("test_sent"))
    else:
        why = wording.delivery_error(told.get("error")) or str(told["status"])
        print(wording.say("test_failed", why=why), file=sys.stderr)
    return 0 if sent else 1


def _type_of(address: str) -> str:
    if not address.lower().startswith(("http://", "https://")):
        return "apprise"
    return "feishu" if any(host in address for host in _FEISHU) else "webhook"


def _secret(args: argparse.Namespace) -> str | None:
    """From stdin it shows up in no list of processes."""
    return sys.stdin.readline().strip() if args.secret == "-" else args.secret


def _found(client: Client, word: str) -> dict[str, Any]:
    targets = client.notification_targets()
    found = [one for one in targets if word in (one["name"], str(one["id"]))]
    if found:
        return found[0]
    message = f"There is no notification target '{word}'."
    raise Complaint(message, hint="See 'runyard notify ls'.", code=exit_codes.NOT_FOUND)


def _show_targets(found: list[dict[str, Any]]) -> None:
    headings = ("ID", "NAME", "TYPE", "ADDRESS", "EVENTS", "SIGNED", "ON")
    rows = [
        [
            str(one["id"]),
            formatting.clean(one["name"]),
            one["type"],
            formatting.clean(one["url"]),
            ",".join(one["events"]),
            "yes" if one["secret"] else "no",
            "yes" if one["enabled"] else "no",
        ]
        for one in found
    ]
    tables.print_table(headings, rows, elastic=(3, 4))


def _show_deliveries(found: list[dict[str, Any]]) -> None:
    headings = ("DELIVERY", "EVENT", "JOB", "TO", "STATUS", "TRIES", "WRITTEN", "NEXT", "ERROR")
    rows = [
        [
            one["delivery"],
            one["event"],
            str(one["job_id"] or "-"),
            formatting.clean(str(one["target"]["name"] or one["target"]["url"])),
            one["status"],
            str(one["tries"]),
            formatting.clock(one["created_at"]),
            formatting.clock(one["due_at"]),
            wording.delivery_error(one.get("error")),
        ]
        for one in found
    ]
    tables.print_table(headings, rows, elastic=(3, 8))
