"""What the processes of attempts use, read from /proc in one pass for all of them.

The processes of an attempt are the descendants of its supervisor. Counters of a process that was
waited for go to its parent, so the sum over a tree and its supervisor loses nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runyard.executors.base import Usage
from runyard.supervisor import identity, journal, process_table

PSS_EVERY_S = 60.0
FIRST_PSS_S = 15.0  # at most so long after the first look
# The kernel walks all pages for it: of the time that passes, no attempt may take more.
PSS_SHARE = 0.001
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
_DEAD = (b"Z", b"X", b"x")
# Fields of /proc/PID/stat, counted from the state.
_STATE, _PARENT, _START, _RSS = 0, 1, 19, 21
_OWN_TIMES, _CHILD_TIMES = slice(11, 13), slice(13, 15)

Row = list[bytes]


@dataclass(frozen=True, slots=True)
class Root:
    pid: int
    start_ticks: int


class ProcessUsage:
    """`folder_of` gives the folder of an attempt."""

    def __init__(
        self,
        folder_of: Callable[[str], str],
        clock: Callable[[], float] = time.monotonic,
        *,
        counts_root: bool = False,  # where the root is the job's own, not a supervisor
    ) -> None:
        self._folder_of = folder_of
        self._counts_root = counts_root
        self._clock = clock
        self._roots: dict[str, Root] = {}
        self._pss_due: dict[str, float] = {}

    def of(self, attempt_ids: Sequence[str]) -> dict[str, Usage]:
        """Of those that live; the others are left out. Not for two threads at once."""
        asked = set(attempt_ids)
        self._roots = {one: root for one, root in self._roots.items() if one in asked}
        self._pss_due = {one: due for one, due in self._pss_due.items() if one in asked}
        for attempt_id in attempt_ids:
            if attempt_id not in self._roots and (root := self._find_root(attempt_id)):
                self._roots[attempt_id] = root
        if not self._roots:
            return {}
        at = self._clock()
        rows = _table()
        below = _children(rows)
        found = {}
        for attempt_id, root in list(self._roots.items()):
            own = rows.get(root.pid)
            if own is None or int(own[_START]) != root.start_ticks or own[_STATE] in _DEAD:
                del self._roots[attempt_id]  # somebody else may have its number by now
                continue
            tree = _below(root.pid, below) + [root.pid] * self._counts_root
            found[attempt_id] = self._usage(attempt_id, at, own, {pid: rows[pid] for pid in tree})
        return found

    def _find_root(self, attempt_id: str) -> Root | None:
        try:
            written = journal.read(self._folder_of(attempt_id))
        except OSError:
            return None
        record = written.supervisor
        if record is None or written.exit is not None or not identity.same_machine_life(record):
            return None
        return Root(int(record["pid"]), int(record["start_ticks"]))

    def _usage(self, attempt_id: str, at: float, root: Row, tree: Mapping[int, Row]) -> Usage:
        living = [pid for pid, row in tree.items() if row[_STATE] not in _DEAD]
        ticks = 0 if self._counts_root else _sum(root[_CHILD_TIMES])
        ticks += sum(_sum(row[_OWN_TIMES]) + _sum(row[_CHILD_TIMES]) for row in tree.values())
        read, written = _io({self._roots[attempt_id].pid, *living})
        return Usage(
            at=at,
            cpu_s=ticks / _TICKS,
            rss_mb=sum(int(tree[pid][_RSS]) for pid in living) * _PAGE_MB,
            pss_mb=self._pss_mb(attempt_id, at, living),
            read_bytes=read,
            write_bytes=written,
            pids=tuple(living),
        )

    def _pss_mb(self, attempt_id: str, at: float, pids: Sequence[int]) -> float | None:
        """None unless it was measured just now."""
        due = self._pss_due.get(attempt_id)
        if due is None:
            # Spread: all attempts at once would be felt.
            self._pss_due[attempt_id] = at + hash(attempt_id) % 1000 / 1000 * FIRST_PSS_S
            return None
        if at < due or not pids:
            return None
        began = time.monotonic()
        mb = _pss(pids)
        took = time.monotonic() - began
        self._pss_due[attempt_id] = at + max(PSS_EVERY_S, took / PSS_SHARE)
        return mb


def _table() -> dict[int, Row]:
    """Every process that can be read."""
    rows = {}
    folder = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in os.listdir(folder):
            if not name[0].isdigit():
                continue
            try:
                fd = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                continue
            try:
                data = os.read(fd, 4096)
            except OSError:
                continue
            finally:
                os.close(fd)
            rows[int(name)] = data[data.rindex(b")") + 2 :].split(None, _RSS + 1)
    finally:
        os.close(folder)
    return rows


def _children(rows: Mapping[int, Row]) -> dict[int, list[int]]:
    below: dict[int, list[int]] = {}
    for pid, row in rows.items():
        below.setdefault(int(row[_PARENT]), []).append(pid)
    return below


def _below(root: int, below: Mapping[int, Sequence[int]]) -> list[int]:
    found: list[int] = []
    todo = [root]
    while todo:
        mine = below.get(todo.pop(), ())
        found += mine
        todo += mine
    return found


def _sum(fields: Iterable[bytes]) -> int:
    return sum(map(int, fields))


def _io(pids: Iterable[int]) -> tuple[int | None, int | None]:
    """Bytes read from and written to storage; None where the kernel tells of none of them."""
    read = written = 0
    known = False
    for pid in pids:
        text = process_table.read(f"/proc/{pid}/io")
        if not text:
            continue
        found = dict(line.split(b": ", 1) for line in text.splitlines())
        read += int(found.get(b"read_bytes", 0))
        written += int(found.get(b"write_bytes", 0))
        known = True
    return (read, written) if known else (None, None)


def _pss(pids: Iterable[int]) -> float | None:
    total = 0
    known = False
    for pid in pids:
        text = process_table.read(f"/proc/{pid}/smaps_rollup")
        start = text.find(b"\nPss:") if text else -1
        if text and start >= 0:
            total += int(text[start + 5 : text.index(b"kB", start)])
            known = True
    return total / 1024 if known else None
