"""System V shared memory that a job leaves behind: it outlives everybody who had it attached."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from runyard.supervisor import identity, kernel, process_table

Segment = tuple[int, int]  # process that made it, when it last was changed
_TICKS = os.sysconf("SC_CLK_TCK")


class _Row:
    __slots__ = ("attached", "changed_at", "maker", "segment_id", "size", "uid")

    def __init__(self, words: list[bytes]) -> None:
        # key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap
        numbers = [int(word) for word in words[:14]]
        self.segment_id, self.size, self.maker = numbers[1], numbers[3], numbers[4]
        self.attached, self.uid, self.changed_at = numbers[6], numbers[7], numbers[13]


def made_by(pids: Iterable[int]) -> dict[int, Segment]:
    """Segments that these living processes made. One older than the process of that number was
    made by somebody who had the number before."""
    rows = _rows()
    if not rows:
        return {}
    wanted = set(pids)
    return {
        row.segment_id: (row.maker, row.changed_at)
        for row in rows
        if row.maker in wanted and row.changed_at >= _started_at(row.maker)
    }


def remove(candidates: dict[int, Segment]) -> int:
    """Remove those that are unchanged, ours, and attached by nobody; the bytes given back."""
    freed = 0
    for row in _rows() if candidates else ():
        same = candidates.get(row.segment_id) == (row.maker, row.changed_at)
        if same and row.attached == 0 and row.uid == os.getuid():
            freed += row.size if kernel.remove_segment(row.segment_id) else 0
    return freed


def _rows() -> list[_Row]:
    table = process_table.read("/proc/sysvipc/shm") or b""
    return [_Row(line.split()) for line in table.split(b"\n")[1:] if len(line.split()) >= 14]


def _started_at(pid: int) -> float:
    """In whole seconds, as segments count; without an answer nothing is ours."""
    stat = identity.stat_fields(pid)
    if stat is None:
        return float("inf")
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return float(int(booted + int(stat[19]) / _TICKS))
