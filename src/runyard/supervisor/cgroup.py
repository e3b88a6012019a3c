"""Whether and where control groups can be used. Nothing depends on them: they are an extra."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from runyard.supervisor.attempt_group import FREEZER, MEMORY, PIDS, UNIFIED

ROOT = "/sys/fs/cgroup"
_PROCESSES = "cgroup.procs"
_CONTROLS = {
    FREEZER: "freezer.state",
    MEMORY: "memory.limit_in_bytes",
    PIDS: "pids.max",
}


def find(root: str = ROOT, *, prepare: bool = True) -> dict[str, str]:
    """For each role that a group can have here, the directory to make it in; `prepare` a group
    that was delegated to us for it."""
    places = _unified_places(root, prepare) or _v1_place(root, FREEZER)
    for role in (MEMORY, PIDS):
        if role not in places:
            places.update(_v1_place(root, role))
    return places


def writable_v2(root: str = ROOT) -> str | None:
    """A v2 group in which a group of ours can be made and killed as a whole."""
    base = _mounted_v2(root)
    return None if base is None else _usable(base + _own_path("0::"), "cgroup.kill")


def writable_v1_freezer(root: str = ROOT) -> str | None:
    return _v1_place(root, FREEZER).get(FREEZER)


def _unified_places(root: str, prepare: bool) -> dict[str, str]:
    """Below our own group; or beside it, if the group above was delegated to us and offers more.
    A group that has processes of its own cannot give controllers to groups below it."""
    own = writable_v2(root)
    if own is None:
        return {}
    above = os.path.dirname(own)
    if not _controllers(own) and own != _mounted_v2(root) and _delegated(above):
        for controller in (MEMORY, PIDS) if prepare else ():
            with contextlib.suppress(OSError):
                Path(f"{above}/cgroup.subtree_control").write_text(f"+{controller}")
        if _controllers(above) and _usable(above, "cgroup.kill"):
            own = above
    return {UNIFIED: own, **dict.fromkeys(_controllers(own), own)}


def _controllers(base: str) -> list[str]:
    """Those of interest to us that a group below gets."""
    try:
        names = Path(f"{base}/cgroup.subtree_control").read_text().split()
    except OSError:
        return []
    return [name for name in (MEMORY, PIDS) if name in names]


def _delegated(group: str) -> bool:
    """Whether it was given to us: by its owner, or by systemd's mark where root owns all."""
    try:
        if os.getuid() != 0:
            return os.stat(f"{group}/{_PROCESSES}").st_uid == os.getuid()
        for name in ("user.delegate", "trusted.delegate"):
            with contextlib.suppress(OSError):
                if os.getxattr(group, name) == b"1":
                    return True
    except OSError:
        pass
    return False


def _v1_place(root: str, role: str) -> dict[str, str]:
    base = f"{root}/{role}"
    if not os.path.exists(f"{base}/{_PROCESSES}"):
        return {}
    usable = _usable(base + _own_path(f":{role}:"), _CONTROLS[role])
    return {} if usable is None else {role: usable}


def _mounted_v2(root: str) -> str | None:
    for base in (root, f"{root}/unified"):
        if os.path.exists(f"{base}/cgroup.controllers"):
            return base
    return None


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
