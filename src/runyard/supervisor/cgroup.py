"""Whether control groups can be used here. Nothing depends on them: they are an extra."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = "/sys/fs/cgroup"
_PROCESSES = "cgroup.procs"


def writable_v2(root: str = ROOT) -> str | None:
    """A v2 group in which a group of ours can be made and killed as a whole."""
    for base in (root, f"{root}/unified"):
        if os.path.exists(f"{base}/cgroup.controllers"):
            return _usable(base + _own_path("0::"), "cgroup.kill")
    return None


def writable_v1_freezer(root: str = ROOT) -> str | None:
    base = f"{root}/freezer"
    if not os.path.exists(f"{base}/{_PROCESSES}"):
        return None
    return _usable(base + _own_path(":freezer:"), "freezer.state")


def _own_path(marker: str) -> str:
    """Where in the hierarchy this process is: only below it can a plain user move processes."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if marker in line:
            path = line.partition(marker)[2]
            return "" if path == "/" else path
    return ""


def _usable(parent: str, control: str) -> str | None:
    """Make a group and look inside: on a plain tmpfs the mkdir succeeds and means nothing."""
    group = f"{parent}/runyard-probe-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError:
        return None
    try:
        there = os.path.exists(f"{group}/{_PROCESSES}") and os.path.exists(f"{group}/{control}")
        writable = os.access(f"{parent}/{_PROCESSES}", os.W_OK)
        return parent if there and writable else None
    finally:
        os.rmdir(group)
