"""Which node a person means."""

from __future__ import annotations

import argparse

from runyard.cli import exit_codes
from runyard.cli.complaints import Complaint
from runyard.sdk.client import Client


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "node", nargs="?", help="id or name; may be left out when there is only one"
    )


def chosen(client: Client, word: str | None) -> str:
    """The node's id, given its id, its name, or nothing when there is only one."""
    nodes = client.nodes()
    ids = [str(node.get("node_id")) for node in nodes]
    if word is None:
        if len(ids) == 1:
            return ids[0]
        raise Complaint(f"There are {len(ids)} nodes; name one of: {', '.join(ids)}.")
    found = [node for node in nodes if word in (node.get("node_id"), node.get("name"))]
    if len(found) != 1:
        what = "There is no node" if not found else "More than one node is called"
        raise Complaint(
            f"{what} '{word}'.", hint=f"Ids: {', '.join(ids)}.", code=exit_codes.NOT_FOUND
        )
    return str(found[0]["node_id"])
