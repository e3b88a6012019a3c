"""runyard nodes: machines, what they have and how busy they are."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import formatting, options, tables


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    nodes = options.client(args).nodes()
    if args.json:
        tables.print_json(nodes)
    elif args.quiet:
        for node in nodes:
            print(node.get("node_id"))
    else:
        headings = ("NODE", "NAME", "STATE", "CPU", "MEMORY", "GPUS", "LOAD", "SEEN")
        tables.print_table(headings, [_row(node) for node in nodes], elastic=(1,))
    return 0


def _row(node: dict[str, Any]) -> list[str]:
    capacity = node.get("capacity") or {}
    load = node.get("load") or {}
    busy = ", ".join(
        f"{name} {float(value):.0f}%" for name, value in load.items() if value is not None
    )
    cores = capacity.get("cpu_cores", node.get("cpu_cores"))
    memory = capacity.get("memory_gb", node.get("memory_gb"))
    gpus = capacity.get("gpus", node.get("gpus"))
    return [
        str(node.get("node_id")),
        str(node.get("name") or ""),
        "drained" if node.get("drained") else "ok",
        "-" if cores is None else formatting.number(cores),
        "-" if memory is None else formatting.gigabytes(memory),
        "-" if gpus is None else str(len(gpus) if isinstance(gpus, list) else gpus),
        busy or "-",
        formatting.age(node.get("heartbeat_at")),
    ]
