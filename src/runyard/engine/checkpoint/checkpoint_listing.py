"""What lies in a checkpoint directory, and the removal of what is no longer wanted there."""

from __future__ import annotations

import os
import shutil
from itertools import islice

from runyard.domain.checkpoints.listing import Found, Listed
from runyard.engine import folder_walk
from runyard.report.atomic_save import MANIFEST_SUFFIX

MOST_ENTRIES = 10_000
MOST_DEEP = 3  # folders below the directory itself
_REMOVED = ".partial-removed-"  # a name that never counts, should the removal be cut short


def listed(folder: str) -> list[Listed]:
    """Files only, paths relative to the folder."""
    # Of too many, those with the numbers that grow are the ones of interest.
    files = folder_walk.files_below(folder, MOST_DEEP, last_name_first=True)
    return [
        Listed(path, told.st_size, told.st_mtime) for path, told in islice(files, MOST_ENTRIES)
    ]


def is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(iter(entries), None) is None
    except OSError:
        return True


def remove(folder: str, found: Found) -> bool:
    """Moved aside first, so that half of it never looks like a checkpoint. Refuses whatever a link
    would lead out of the folder."""
    root = os.path.realpath(folder)
    whole = os.path.join(root, found.path)
    if os.path.isdir(whole) and not os.path.islink(whole):
        return _remove_one(root, found.path)
    removed = [_remove_one(root, part) for part in found.parts]
    return all(removed)


def _remove_one(root: str, path: str) -> bool:
    place = os.path.join(root, path)
    if os.path.realpath(place) != place or not place.startswith(root + os.sep):
        return False
    aside = os.path.join(root, _REMOVED + path.replace("/", "-")[-150:])
    try:
        os.rename(place, aside)
        if os.path.isdir(aside):
            shutil.rmtree(aside)
        else:
            os.unlink(aside)
        if os.path.isfile(place + MANIFEST_SUFFIX):
            os.unlink(place + MANIFEST_SUFFIX)
    except OSError:
        return False
    return True
