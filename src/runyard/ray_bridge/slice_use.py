"""What the processes of a slice use of their node.

This module travels to the nodes by value: it uses the standard library, nothing of ours.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def slice_usage(shim: int) -> dict[str, Any] | None:
    """Of those below the shim; None where there are none."""
    rows = _table()
    keeper = next((pid for pid, row in rows.items() if row[1] == shim), None)
    if keeper is None:
        return None
    tree = _below(keeper, rows)
    supervisors = [pid for pid, row in rows.items() if row[1] == keeper]
    jobs = [pid for pid in tree if pid not in supervisors]
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = file.read().strip()
    return {
        "cpu_s": sum(rows[pid][2] for pid in jobs) / _TICKS,
        "rss_mb": sum(rows[pid][3] for pid in jobs) * _PAGE / (1 << 20),
        "pids": jobs,
        "at": time.time(),
        "boot_id": boot_id,
    }


def _table() -> dict[int, tuple[str, int, int, int]]:
    """pid -> (state, parent, ticks with those of its children, pages)."""
    rows = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    data = file.read()
                words = data[data.rindex(b")") + 2 :].split()
                ticks = sum(map(int, words[11:15]))
                rows[int(name)] = (words[0].decode(), int(words[1]), ticks, int(words[21]))
    return rows


def _below(root: int, rows: dict[int, tuple[str, int, int, int]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, row in rows.items():
        children.setdefault(row[1], []).append(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        mine = children.get(todo.pop(), [])
        found += mine
        todo += mine
    return found
