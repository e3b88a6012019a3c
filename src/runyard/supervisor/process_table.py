"""Reading /proc: children, descendants, tags, environments."""

from __future__ import annotations

import os
from collections.abc import Iterator

from runyard.supervisor import identity

_DEAD = (b"Z", b"X", b"x")


def read(path: str, limit: int = 1 << 20) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        chunks = []
        while limit > 0 and (chunk := os.read(fd, min(limit, 1 << 16))):
            chunks.append(chunk)
            limit -= len(chunk)
        return b"".join(chunks)
    except OSError:
        return None
    finally:
        os.close(fd)


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid: int) -> list[int]:
    """Direct children of a process, zombies included."""
    found: list[int] = []
    for thread in _threads(pid):
        listing = read(f"/proc/{pid}/task/{thread}/children")
        if listing is None:
            if thread == str(pid) and identity.stat_fields(pid) is not None:
                return _children_by_scan(pid)  # kernel built without the children files
            continue
        found.extend(map(int, listing.split()))
    return found


def own_children() -> list[int]:
    """Direct children of this process, which has one thread."""
    pid = os.getpid()
    listing = read(f"/proc/self/task/{pid}/children")
    return _children_by_scan(pid) if listing is None else list(map(int, listing.split()))


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    seen = {pid}
    queue = [pid]
    while queue:
        for child in children(queue.pop()):
            if child not in seen:
                seen.add(child)
                found.append(child)
                queue.append(child)
    return found


def alive(pid: int) -> bool:
    """Whether it runs; a zombie is dead."""
    stat = identity.stat_fields(pid)
    return stat is not None and stat[0] not in _DEAD


def tag(pid: int) -> int | None:
    """The tag of the attempt a process belongs to; None for untagged or unreadable ones."""
    limits = read(f"/proc/{pid}/limits")
    if limits is None:
        return None
    start = limits.find(b"Max file locks")
    if start < 0:
        return None
    words = limits[start + 14 : limits.find(b"\n", start)].split()
    if len(words) < 2 or words[0] != words[1] or not words[0].isdigit():
        return None
    return int(words[0])


def command_line(pid: int) -> bytes:
    return read(f"/proc/{pid}/cmdline", 4096) or b""


def describe(pid: int) -> dict[str, object]:
    """A process that does not die, for people."""
    stat = identity.stat_fields(pid)
    comm = (read(f"/proc/{pid}/comm", 64) or b"?").strip().decode("utf-8", "replace")
    where = (read(f"/proc/{pid}/wchan", 128) or b"").decode("utf-8", "replace")
    state = stat[0].decode() if stat else "?"
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        uid = -1
    return {"pid": pid, "comm": comm, "state": state, "wchan": where, "uid": uid}


def ancestors_and_self() -> set[int]:
    found = {0, 1, os.getpid()}
    pid = os.getppid()
    while pid not in found:
        found.add(pid)
        stat = identity.stat_fields(pid)
        pid = int(stat[1]) if stat else 0
    return found


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _children_by_scan(parent: int) -> list[int]:
    return [pid for pid, ppid in _parents() if ppid == parent]


def _parents() -> Iterator[tuple[int, int]]:
    for pid in pids():
        stat = identity.stat_fields(pid)
        if stat is not None:
            yield pid, int(stat[1])
