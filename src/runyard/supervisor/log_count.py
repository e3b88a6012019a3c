"""Counts the lines of a log before its middle is dropped, so that later lines keep their numbers.

Beside the log, in `out.log.lines`, entry n (eight bytes) says how many newlines come before byte
n * BLOCK. Readers of the log write the same file when they have counted further.
"""

from __future__ import annotations

import os
import struct

BLOCK = 64 * 1024
SUFFIX = ".lines"


def count_before_drop(log: int, path: str, end: int) -> None:
    """Complete the counts of the log at `path` (open as `log`) up to byte `end`."""
    beside = os.open(path + SUFFIX, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        there = os.fstat(beside).st_size // 8
        counts = [] if there else [0]
        total = struct.unpack("=Q", os.pread(beside, 8, (there - 1) * 8))[0] if there else 0
        for block in range(max(there - 1, 0), -(-end // BLOCK)):
            data = os.pread(log, BLOCK, block * BLOCK)
            if len(data) < BLOCK:
                break
            total += data.count(b"\n")
            counts.append(total)
        os.pwrite(beside, struct.pack(f"={len(counts)}Q", *counts), there * 8)
    finally:
        os.close(beside)
