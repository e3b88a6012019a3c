"""runyard datasets: data that jobs name by a number."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import answers, formatting, options, tables, wording


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="list | add NAME URI | rm NAME")
    listing = actions.add_parser("list", aliases=["ls"], help="all datasets")
    options.add_read(listing, ids=True)
    add = actions.add_parser("add", help="register a dataset; nothing is fetched yet")
    add.add_argument("name", help="letters, digits, '.', '_' and '-'")
    add.add_argument("uri", help="whatever prefetch takes: https://, hf://, s3://, file://")
    add.add_argument("--hash", metavar="sha256:HEX", help="refuse data that is not exactly this")
    options.add_read(add, ids=True)
    remove = actions.add_parser("rm", aliases=["delete"], help="forget a dataset")
    remove.add_argument("name", help="name or number")
    options.add_read(remove)
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.action == "add":
        made = client.create_dataset(args.name, args.uri, hash=args.hash)
        told = {"dataset": made["name"], "id": made["id"], "variable": made["variable"]}
        words = wording.say("dataset_added", **told)
        return answers.print_one(args, made, words, id_name="id")
    if args.action in ("rm", "delete"):
        client.delete_dataset(args.name)
        print(wording.say("dataset_removed", dataset=args.name))
        return 0
    empty = wording.say("no_datasets")
    return answers.print_all(args, client.datasets(), "id", _show, empty=empty)


def _show(found: list[dict[str, Any]]) -> None:
    headings = ("ID", "NAME", "VARIABLE", "ADDRESS", "HASH", "BY")
    tables.print_table(headings, [_row(one) for one in found], elastic=(3,))


def _row(one: dict[str, Any]) -> list[str]:
    return [
        str(one.get("id")),
        formatting.clean(str(one.get("name"))),
        str(one.get("variable")),
        formatting.clean(str(one.get("uri"))),
        str(one.get("hash") or "-")[:19],
        formatting.clean(str(one.get("created_by"))),
    ]
