"""runyard nodes: machines, what they have and how busy they are."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import answers, formatting, options, tables


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    return answers.print_all(args, options.client(args).nodes(), "node_id", _show)


def _show(nodes: list[dict[str, Any]]) -> None:
    headings = ("NODE", "NAME", "KIND", "STATE", "CPU", "MEMORY", "GPUS", "LOAD", "SEEN")
    tables.print_table(headings, [_row(node) for node in nodes], elastic=(1,))


def _row(node: dict[str, Any]) -> list[str]:
    load = node.get("load") or {}
    busy = ", ".join(
        f"{name} {float(value):.0f}%" for name, value in load.items() if value is not None
    )
    cores, memory = node.get("cpu_cores"), node.get("memory_gb")
    return [
        str(node.get("node_id")),
        str(node.get("name") or ""),
        str(node.get("kind") or "server"),
        _state(node),
        "-" if cores is None else formatting.number(cores),
        "-" if memory is None else formatting.gigabytes(memory),
        str(node.get("gpu_count", "-")),
        busy or "-",
        formatting.age(node.get("heartbeat_at")),
    ]


def _state(node: dict[str, Any]) -> str:
    if not node.get("alive", True):
        return "gone"
    return "drained" if node.get("drained") else "ok"
