"""The files of a slice, copied into the attempt's folder on the server's machine.

The size of a copy is the offset to go on from: bytes and offset cannot disagree, so a bridge that
is killed loses nothing and copies nothing twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from runyard.ray_bridge.slice_files import MIRRORED
from runyard.supervisor import journal, kernel, log_count, protocol

SLICES = "slices"


class Mirror:
    """Of one slice. The journal and what belongs to the slice alone go to a folder of their own;
    logs and metrics, which have a name for each rank, to the attempt's. The log of a launcher that
    starts the ranks of its node itself is that of `log_rank`."""

    def __init__(self, folder: str, index: int, log_rank: int = 0) -> None:
        self._folder = folder
        self._index = index
        self._log_rank = log_rank
        self.own_folder = f"{folder}/{SLICES}/{index}"
        os.makedirs(self.own_folder, 0o700, exist_ok=True)
        self._holes_known = 0
        self.offsets: dict[str, int] = self._present()

    def take(self, pieces: Sequence[tuple[str, int, bytes]]) -> None:
        for name, offset, data in pieces:
            if MIRRORED.fullmatch(name):
                self._write(name, offset, data)
        if any(name == protocol.JOURNAL for name, _, _ in pieces):
            self._punch()

    def go_on(self, name: str, offset: int, blocks: Sequence[bytes]) -> None:
        """What follows behind a piece of a long file."""
        for block in blocks:
            if block and MIRRORED.fullmatch(name):
                self._write(name, offset, block)
                offset += len(block)

    def journal(self) -> journal.Journal:
        try:
            return journal.read(self.own_folder)
        except FileNotFoundError:
            return journal.Journal()

    def _write(self, name: str, offset: int, data: bytes) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path(name), flags, 0o600)
        try:
            if offset < 0:  # it became shorter: all of it again
                os.ftruncate(fd, 0)
                self.offsets[name] = 0
                return
            view, position = memoryview(data), offset
            while view:
                written = os.pwrite(fd, view, position)
                view, position = view[written:], position + written
            self.offsets[name] = position
        finally:
            os.close(fd)

    def _punch(self) -> None:
        """The node gave back the middle of a long log: so does the copy."""
        holes = self.journal().log_holes
        for hole in holes[self._holes_known :]:
            if hole.get("cut"):
                continue
            path = self._path(str(hole.get("log", protocol.LOG)))
            with contextlib.suppress(OSError):
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    end = min(int(hole["end"]), os.fstat(fd).st_size)
                    log_count.count_before_drop(fd, path, end)
                    kernel.punch_hole(fd, int(hole["start"]), end)
                finally:
                    os.close(fd)
        self._holes_known = len(holes)

    def _path(self, name: str) -> str:
        if name == protocol.LOG and self._log_rank:
            return f"{self._folder}/{protocol.rank_log(self._log_rank)}"
        own = name == protocol.JOURNAL or (name == protocol.LOG and self._index > 0)
        return f"{self.own_folder if own else self._folder}/{name}"

    def _present(self) -> dict[str, int]:
        """What an earlier bridge has copied. Files of other slices do no harm: nobody asks."""
        found = {}
        for folder in (self._folder, self.own_folder):
            for entry in os.scandir(folder):
                if MIRRORED.fullmatch(entry.name) and entry.path == self._path(entry.name):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
        if self._log_rank and os.path.exists(self._path(protocol.LOG)):
            found[protocol.LOG] = os.path.getsize(self._path(protocol.LOG))
        return found
