"""The list of sizes and hashes that a checkpoint may carry, held against what is there."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any

from runyard.probes.checkpoint_check.single_files import read_json
from runyard.probes.checkpoint_check.verdicts import Flaw, size_of

BESIDE_FILE = ".manifest.json"
INSIDE_FOLDER = "runyard.manifest.json"
_BLOCK = 1 << 20


class Clock:
    """How long hashing may still go on; all else is quick."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.ran_out = False

    def left(self) -> bool:
        if time.monotonic() >= self._until:
            self.ran_out = True
        return not self.ran_out


def of(path: str) -> dict[str, Any] | None:
    """The manifest of a file or folder; None if it has none."""
    folder = os.path.isdir(path)
    place = os.path.join(path, INSIDE_FOLDER) if folder else path + BESIDE_FILE
    if not os.path.exists(place):
        return None
    found = read_json(place)
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict) or not files:
        raise Flaw("damaged", file=os.path.basename(place))
    return found  # type: ignore[no-any-return]


def check(path: str, manifest: dict[str, Any], clock: Clock) -> bool:
    """Raises Flaw; returns whether every hash was compared before the time was over."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    for name, said in manifest["files"].items():
        _check_size(folder, name, said)
    return all(_check_hash(folder, name, said, clock) for name, said in manifest["files"].items())


def _check_size(folder: str, name: str, said: Any) -> None:
    if not isinstance(said, dict) or os.path.isabs(name) or ".." in name.split(os.sep):
        raise Flaw("damaged", file=name)
    size = size_of(os.path.join(folder, name))
    if size != said.get("size"):
        raise Flaw("wrong_size", file=name, size=size, expected=said.get("size"))


def _check_hash(folder: str, name: str, said: dict[str, Any], clock: Clock) -> bool:
    expected = said.get("sha256")
    if not isinstance(expected, str):
        return True  # sizes only
    digest = hashlib.sha256()
    try:
        with open(os.path.join(folder, name), "rb") as file:
            while clock.left():
                block = file.read(_BLOCK)
                if not block:
                    break
                digest.update(block)
    except OSError as error:
        raise Flaw("unreadable", file=name, error=error.strerror or "error") from None
    if clock.ran_out:
        return False
    if digest.hexdigest() != expected.lower():
        raise Flaw("wrong_hash", file=name)
    return True
