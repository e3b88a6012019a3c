"""runyard rules: alert rules of one's own; try them on history before they are kept."""

from __future__ import annotations

import argparse
import time
from typing import Any

from runyard.cli import amounts, answers, formatting, options, tables, wording
from runyard.sdk.client import Client

ACTIONS = ("notify", "cancel", "checkpoint-and-stop", "retry")


def configure(parser: argparse.ArgumentParser) -> None:
    words = "list | add NAME EXPRESSION | preview EXPRESSION | enable | disable | rm NAME"
    actions = parser.add_subparsers(dest="action", metavar=words)
    listing = actions.add_parser("list", aliases=["ls"], help="all rules")
    options.add_read(listing, ids=True)
    add = actions.add_parser("add", help='keep a rule, such as: add high "loss > 10 for 5m"')
    add.add_argument("name")
    add.add_argument("expression")
    add.add_argument("--for", dest="length", metavar="SPAN", help="how long it must hold: 5m")
    add.add_argument("--level", choices=("warning", "error", "critical"), default="warning")
    add.add_argument("--action", dest="does", choices=ACTIONS, action="append", default=[])
    options.add_read(add, ids=True)
    preview = actions.add_parser("preview", help="when it would have fired; nothing is kept")
    preview.add_argument("expression")
    preview.add_argument("--for", dest="length", metavar="SPAN")
    preview.add_argument("--job", help="on this job's history")
    preview.add_argument(
        "--since", metavar="SPAN", help="on jobs that ran in the last 7d, 12h ..."
    )
    options.add_read(preview)
    for name, text in (("enable", "let it fire"), ("disable", "keep it, but never let it fire")):
        switch = actions.add_parser(name, help=text)
        switch.add_argument("name", help="name or number")
        options.add_read(switch)
    remove = actions.add_parser("rm", aliases=["delete"], help="forget a rule")
    remove.add_argument("name", help="name or number")
    options.add_read(remove)
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.action == "add":
        made = client.create_rule(
            args.name, args.expression, for_=args.length, level=args.level, actions=args.does
        )
        return _answer(args, made, "rule_added")
    if args.action in ("enable", "disable"):
        on = args.action == "enable"
        changed = client.change_rule(args.name, enabled=on)
        return _answer(args, changed, "rule_enabled" if on else "rule_disabled")
    if args.action in ("rm", "delete"):
        client.delete_rule(args.name)
        print(wording.say("rule_removed", rule=args.name))
        return 0
    if args.action == "preview":
        return _preview(args, client)
    return answers.print_all(args, client.rules(), "name", _show, empty=wording.say("no_rules"))


def _answer(args: argparse.Namespace, rule: dict[str, Any], key: str) -> int:
    return answers.print_one(args, rule, wording.say(key, rule=rule["name"]), id_name="name")


def _show(found: list[dict[str, Any]]) -> None:
    headings = ("ID", "NAME", "LEVEL", "WHEN", "FOR", "DOES", "STATE", "BY")
    tables.print_table(headings, [_row(rule) for rule in found], elastic=(3,))


def _row(rule: dict[str, Any]) -> list[str]:
    length = float(rule.get("for") or 0)
    state = "on" if rule.get("enabled") else "off"
    if rule.get("broken"):
        state = f"broken: {rule['broken']}"
    return [
        str(rule.get("id")),
        str(rule.get("name")),
        str(rule.get("level")),
        formatting.clean(str(rule.get("expression"))),
        formatting.span(length) if length else "-",
        ", ".join(rule.get("actions") or ()),
        formatting.clean(state),
        formatting.clean(str(rule.get("created_by"))),
    ]


def _preview(args: argparse.Namespace, client: Client) -> int:
    since = None
    if args.since:
        since = time.time() - amounts.seconds(args.since, "--since")
    found = client.preview_rule(args.expression, for_=args.length, job=args.job, since=since)
    if args.json:
        tables.print_json(found)
        return 0
    words = wording.say("rule_preview", times=found["times"], jobs=len(found["jobs"]))
    print(words)
    if found["unknown"]:
        print(wording.say("rule_unknown", names=", ".join(map(str, found["unknown"]))))
    if found["firings"]:
        rows = [
            [
                str(one["job_id"]),
                formatting.clock(one["since"]),
                formatting.clock(one["at"]),
                formatting.clock(one["until"]),
            ]
            for one in found["firings"]
        ]
        tables.print_table(("JOB", "HELD SINCE", "FIRED", "UNTIL"), rows, elastic=(0,))
    return 0
