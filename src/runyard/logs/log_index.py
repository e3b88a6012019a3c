"""Counts the lines of a log block by block: any line is found without reading from the start.

What was counted once stays counted, so the numbers of lines remain valid when the middle of the
log is dropped later. For logs that may come near their limit the counts are kept beside the log;
the supervisor adds to them before it drops anything.
"""

from __future__ import annotations

import contextlib
import os
import threading
from array import array
from bisect import bisect_left
from pathlib import Path

BLOCK = 64 * 1024
_READ = 16 * BLOCK
_KEEP_FROM = 16 * 1024 * 1024  # smaller logs are counted again in milliseconds


class LineIndex:
    """`counts[n]` is how many newlines come before byte n * BLOCK. A block is counted when it is
    complete: a log only grows, so the block never changes, except by becoming a hole."""

    def __init__(self, path: str) -> None:
        self._beside = Path(path + ".lines")
        self._lock = threading.Lock()
        self._counts = array("Q", [0])
        self._kept = 0

    def extend(self, handle: int, size: int) -> None:
        """Count what has been written since."""
        with self._lock:
            whole = size - size % BLOCK
            if (len(self._counts) - 1) * BLOCK > whole:
                # Shorter than it was: on a file system without holes the log was cut instead.
                self._counts, self._kept = array("Q", [0]), 0
            self._load(whole // BLOCK + 1)
            position = (len(self._counts) - 1) * BLOCK
            while position < whole:
                position = self._count(handle, position, whole)
            if (len(self._counts) - self._kept) * BLOCK >= _KEEP_FROM:
                self._keep()

    def before(self, handle: int, offset: int) -> int:
        """How many newlines come before this byte, dropped ones included."""
        block = min(offset // BLOCK, len(self._counts) - 1)
        count, start = self._counts[block], block * BLOCK
        if offset == start:
            return count
        if block + 1 < len(self._counts):
            data = os.pread(handle, BLOCK, start)
            dropped = self._counts[block + 1] - count - data.count(b"\n")
            if dropped and data[:1] == b"\0":
                return self._counts[block + 1] - data.count(b"\n", offset - start)
            return count + data.count(b"\n", 0, offset - start)
        while start < offset:
            data = os.pread(handle, min(_READ, offset - start), start)
            if not data:
                break
            count += data.count(b"\n")
            start += len(data)
        return count

    def find(self, handle: int, newline: int, size: int) -> tuple[int, bool]:
        """The byte after the `newline`th newline (from 1), and whether it still exists. Where it
        was dropped, a byte inside the hole; where there are fewer, the end of the file."""
        block = max(0, bisect_left(self._counts, newline) - 1)
        count, start = self._counts[block], block * BLOCK
        known = self._counts[block + 1] if block + 1 < len(self._counts) else None
        while start < size:
            data = os.pread(handle, BLOCK, start)
            inside = data.count(b"\n")
            wanted = newline - count
            if known is not None and (dropped := known - count - inside) > 0:
                # Holes reach from a block's start or to its end, never only over its middle.
                wanted -= dropped if data[:1] == b"\0" else 0
                if not 0 < wanted <= inside:
                    return start, False
            if wanted <= inside:
                return start + _nth(data, wanted) + 1, True
            if not data:
                break
            count, known = count + inside, None
            start += len(data)
        return size, True

    def _count(self, handle: int, position: int, whole: int) -> int:
        data = os.pread(handle, min(_READ, whole - position), position)
        if not data:
            return whole
        total = self._counts[-1]
        complete = len(data) - len(data) % BLOCK
        for start in range(0, complete, BLOCK):
            total += data.count(b"\n", start, start + BLOCK)
            self._counts.append(total)
        return position + complete if complete else whole

    def _load(self, most: int) -> None:
        with contextlib.suppress(OSError):
            if self._beside.stat().st_size // 8 <= len(self._counts):
                return
            data = self._beside.read_bytes()[: most * 8]
            kept = array("Q")
            kept.frombytes(data[: len(data) - len(data) % 8])
            have = len(self._counts)
            if len(kept) > have and kept[have - 1] == self._counts[-1]:
                self._counts.extend(kept[have:])
                self._kept = len(self._counts)

    def _keep(self) -> None:
        # What is already there is the same or better, so only what follows it is written.
        with contextlib.suppress(OSError):
            handle = os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                there = os.fstat(handle).st_size // 8
                if there < len(self._counts):
                    os.pwrite(handle, self._counts[there:].tobytes(), there * 8)
            finally:
                os.close(handle)
            self._kept = len(self._counts)


def _nth(data: bytes, wanted: int) -> int:
    place = -1
    for _ in range(wanted):
        place = data.find(b"\n", place + 1)
    return place
