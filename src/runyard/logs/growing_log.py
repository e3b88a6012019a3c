"""A log on this machine that is still being written, or is not there yet, read piece by piece."""

from __future__ import annotations

import os

from runyard.logs.log_spans import extents


class GrowingLog:
    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._path = -1, ""

    def read(self, offset: int, most: int) -> tuple[bytes | None, int] | None:
        """(what is there, for how many bytes of the log it stands); None for nothing, and no bytes
        where they were dropped."""
        if not self._is_open():
            return None
        size = os.fstat(self._handle).st_size
        if size <= offset:
            return None
        start, stop, is_gap = next(extents(self._handle, offset, size))
        if is_gap:
            return None, stop - start
        data = os.pread(self._handle, min(most, stop - start), start)
        return data, len(data)

    def _is_open(self) -> bool:
        if self._handle < 0 and self._path:
            try:
                self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        return self._handle >= 0
