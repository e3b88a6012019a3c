"""What was written in the folder of a slice behind the offsets that are known elsewhere.

This module travels to the nodes by value: it uses the standard library, nothing of ours.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence

MIRRORED = re.compile(r"journal|[\w.-]{1,100}\.(?:log|jsonl)|nccl_trace_rank_\d+|stacks[\w.-]*")
# Ray sends objects of up to 100 KiB with the answer itself. What is larger goes through the object
# store, whose pages then stay with every process that read from it.
INLINE_BYTES = 64 * 1024
BLOCK_BYTES = 96 * 1024
MOST_FILES = 200

Piece = tuple[str, int, bytes]  # file, offset, what is there


class SliceFiles:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def pieces(self, offsets: Mapping[str, int]) -> list[Piece]:
        """What is new. A file that became shorter is told as a piece with an offset of -1: it is
        read again from its beginning."""
        found: list[Piece] = []
        room = INLINE_BYTES
        for name, size in self._files():
            offset = offsets.get(name, 0)
            if size < offset:
                found.append((name, -1, b""))
            elif size > offset and room > 0:
                start, [data] = self._data(name, offset, room, 1)
                found.append((name, start, data))
                room -= len(data)
        return found

    def longest(self, offsets: Mapping[str, int], pieces: Sequence[Piece]) -> str:
        """The file of which most is left behind these pieces; "" where it is not much."""
        if sum(len(data) for _, _, data in pieces) < INLINE_BYTES:
            return ""
        left = {name: size - _end(name, offsets, pieces) for name, size in self._files()}
        name = max(left, key=lambda one: left[one])
        return name if left[name] > INLINE_BYTES else ""

    def blocks(
        self, name: str, offsets: Mapping[str, int], pieces: Sequence[Piece], count: int
    ) -> tuple[int, list[bytes]]:
        """Where the file goes on behind the pieces, and so many blocks of it; those past its end
        are empty."""
        return self._data(name, _end(name, offsets, pieces), BLOCK_BYTES, count)

    def _files(self) -> list[tuple[str, int]]:
        found = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                if MIRRORED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    found.append((entry.name, entry.stat(follow_symlinks=False).st_size))
        # The journal first: it tells of holes in logs before the logs show them.
        return sorted(found, key=lambda one: (one[0] != "journal", one[0]))[:MOST_FILES]

    def _data(self, name: str, offset: int, limit: int, count: int) -> tuple[int, list[bytes]]:
        """From the offset on, a hole left out: then it begins behind it. What follows a block that
        is not full is empty: it may have been written since, and does not join on to it."""
        fd = os.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):
                offset = max(offset, os.lseek(fd, offset, os.SEEK_DATA))
            found = [os.pread(fd, limit, offset)]
            while len(found) < count:
                whole = len(found[-1]) == limit
                found.append(os.pread(fd, limit, offset + limit * len(found)) if whole else b"")
            return offset, found
        finally:
            os.close(fd)


def _end(name: str, offsets: Mapping[str, int], pieces: Sequence[Piece]) -> int:
    ends = {one: start + len(data) for one, start, data in pieces if start >= 0}
    return ends.get(name, offsets.get(name, 0))
