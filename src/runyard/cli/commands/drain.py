"""runyard drain: start nothing more on a node; what runs goes on."""

from __future__ import annotations

import argparse

from runyard.cli import node_choice, options, tables, wording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "node", nargs="?", help="id or name; may be left out when there is only one"
    )
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    node = node_choice.chosen(client, args.node)
    answer = client.drain(node)
    if args.json:
        tables.print_json(answer)
    else:
        print(wording.say("drained", node=node))
    return 0
