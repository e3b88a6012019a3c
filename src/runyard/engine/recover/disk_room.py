"""What is free on the disk of a path, and how large that disk is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence


def free_bytes(path: str) -> int | None:
    """None where nobody can tell."""
    room = _room(path)
    return None if room is None else room[0]


def total_bytes(path: str) -> int | None:
    room = _room(path)
    return None if room is None else room[1]


def fullest(paths: Sequence[str]) -> str:
    """The path with least room; of those on one disk the first."""
    room = {path: free for path in paths if (free := free_bytes(path)) is not None}
    return min(room, key=lambda path: room[path]) if room else paths[0]


def _room(path: str) -> tuple[int, int] | None:
    """Of the nearest folder above it that is there: what could not be written may not be."""
    while path and not os.path.isdir(path):
        path, before = os.path.dirname(path), path
        if path == before:
            return None
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return usage.free, usage.total
