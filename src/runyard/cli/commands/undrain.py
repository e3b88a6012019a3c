"""runyard undrain: let a drained node take jobs again."""

from __future__ import annotations

import argparse

from runyard.cli import answers, node_choice, options, wording


def configure(parser: argparse.ArgumentParser) -> None:
    node_choice.add(parser)
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    node = node_choice.chosen(client, args.node)
    return answers.print_one(args, client.undrain(node), wording.say("undrained", node=node))
