"""Shared memory that a job leaves behind: found in its maps before it is killed, removed after."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from runyard.supervisor import process_table, system_v_memory

ROOT = b"/dev/shm/"
_SEGMENT = b"sysv:%d"
# Path -> device, inode; or the name of a System V segment -> its maker, when it was changed
Mapped = dict[bytes, tuple[int, int]]


def mapped_by(pids: Iterable[int]) -> Mapped:
    """Objects in shared memory that these processes map now, and segments that they made."""
    pids = list(pids)
    found = _mapped_files(pids)
    for segment_id, segment in system_v_memory.made_by(pids).items():
        found[_SEGMENT % segment_id] = segment
    return found


def _mapped_files(pids: Iterable[int]) -> Mapped:
    found: Mapped = {}
    for pid in pids:
        maps = process_table.read(f"/proc/{pid}/maps", 1 << 24)
        if maps is not None and ROOT in maps:
            found.update(_objects(maps))
    return found


def remove(candidates: Mapped) -> int:
    """Remove those that are unchanged, ours, and used by nobody; the bytes given back."""
    segments = {
        int(name[len(_SEGMENT) - 2 :]): found
        for name, found in candidates.items()
        if not name.startswith(ROOT)
    }
    return system_v_memory.remove(segments) + _remove_files(candidates)


def _remove_files(candidates: Mapped) -> int:
    present = {path: size for path, found in candidates.items() if (size := _ours(path, found))}
    if not present:
        return 0
    used = _mapped_files(process_table.pids())
    freed = 0
    for path, size in present.items():
        if path in used:
            continue
        try:
            os.unlink(path)
        except OSError:
            continue
        freed += size
    return freed


def _objects(maps: bytes) -> Mapped:
    found: Mapped = {}
    for line in maps.split(b"\n"):
        start = line.find(ROOT)
        if start < 0 or line.endswith(b" (deleted)"):
            continue
        _, _, _, device, inode, _ = line.split(None, 5)
        major, minor = device.split(b":")
        found[line[start:]] = os.makedev(int(major, 16), int(minor, 16)), int(inode)
    return found


def _ours(path: bytes, mapped: tuple[int, int]) -> int:
    """The size of the object if it is the mapped one and private to our user, else 0. What others
    may open could be in use by processes whose maps we cannot read. Another device: it was in
    a /dev/shm of the job's own, and this one is a stranger's."""
    try:
        info = os.lstat(path)
    except OSError:
        return 0
    same = (info.st_dev, info.st_ino) == mapped and info.st_uid == os.getuid()
    if not (same and stat.S_ISREG(info.st_mode)) or (os.getuid() != 0 and info.st_mode & 0o077):
        return 0
    return max(info.st_size, 1)
