"""The files below a folder that programs write to; links are neither told nor followed."""

from __future__ import annotations

import os
from collections.abc import Iterator


def files_below(
    folder: str, deepest: int, *, last_name_first: bool = False
) -> Iterator[tuple[str, os.stat_result]]:
    """Path below the folder and what the system says of it; a folder that is not there is empty.
    Those in folders more than `deepest` below are left out."""
    return _below(folder, "", deepest, last_name_first)


def _below(
    folder: str, path: str, deeper: int, last_name_first: bool
) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(os.path.join(folder, path)) as entries:
            known = sorted(entries, key=lambda entry: entry.name, reverse=last_name_first)
    except OSError:
        return
    for entry in known:
        below = f"{path}/{entry.name}" if path else entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if deeper:
                    yield from _below(folder, below, deeper - 1, last_name_first)
            elif entry.is_file(follow_symlinks=False):
                yield below, entry.stat(follow_symlinks=False)
        except OSError:
            continue  # gone meanwhile
