"""One checkpoint, looked at from all sides: there, quiet, whole, and as its manifest says."""

from __future__ import annotations

import os
import time

from runyard.probes.checkpoint_check import folders, manifests, shards, single_files
from runyard.probes.checkpoint_check.verdicts import (
    BAD,
    GONE,
    GOOD,
    UNKNOWN,
    Finding,
    Flaw,
    Unproven,
    is_unfinished,
    listed,
)

_FAMILIES = {
    ".ckpt": "lightning",
    ".pt": "torch",
    ".pth": "torch",
    ".bin": "torch",
    ".safetensors": "safetensors",
    ".keras": "keras",
    ".h5": "keras",
    ".hdf5": "keras",
}
_MOST_FILES = 20_000


def check(path: str, *, settle_s: float, clock: manifests.Clock) -> Finding:
    """`settle_s`: what was written to within that time may still be being written."""
    if is_unfinished(os.path.basename(path)):
        return Finding(path, BAD, why={"code": "unfinished", "params": {}})
    before = _seen(path)
    if before is None:
        return Finding(path, GONE, why={"code": "gone", "params": {}})
    finding = Finding(path, GOOD, size_bytes=before[0], saved_at=before[1])
    if settle_s > 0 and time.time() - before[1] < settle_s:
        return _judged(finding, UNKNOWN, "being_written", {})
    try:
        finding.family = _family(path)
        _inside(path, finding, clock)
    except Flaw as flaw:
        _judged(finding, BAD, flaw.code, flaw.params)
    except Unproven as unproven:
        _judged(finding, UNKNOWN, unproven.code, unproven.params)
    except OSError as error:
        _judged(finding, BAD, "unreadable", {"error": error.strerror or type(error).__name__})
    after = _seen(path)
    if after is None:
        return Finding(path, GONE, why={"code": "gone", "params": {}})
    if after != before:
        return _judged(finding, UNKNOWN, "being_written", {})
    return finding


def _inside(path: str, finding: Finding, clock: manifests.Clock) -> None:
    manifest = manifests.of(path)
    if manifest is not None:
        finding.hashed = manifests.check(path, manifest, clock)
        step = manifest.get("step")
        if isinstance(step, int) and not isinstance(step, bool):
            finding.step = step
    try:
        found = _by_format(path, finding.family or "")
        finding.step = found if found is not None else finding.step
    except Unproven:
        if not finding.hashed:
            raise


def _by_format(path: str, family: str) -> int | None:
    if os.path.isdir(path):
        return folders.check(path, family)
    if shards.is_index(path):
        shards.check_index(path)
    elif os.path.exists(path):
        single_files.check(path)
    else:
        folder = os.path.dirname(path)
        folders.tensorflow(folder, listed(folder), os.path.basename(path))
    return None


def _judged(finding: Finding, verdict: str, code: str, params: dict[str, object]) -> Finding:
    finding.verdict = verdict
    finding.why = {"code": code, "params": params}
    return finding


def _family(path: str) -> str:
    if os.path.isdir(path):
        return folders.family(path)
    if shards.is_index(path):
        return "safetensors" if ".safetensors." in path else "torch"
    if not os.path.exists(path):
        return "tensorflow"
    return _FAMILIES.get(os.path.splitext(path)[1].lower(), "file")


def _seen(path: str) -> tuple[int, float] | None:
    """Size and newest change of all of it; None if it is not there. A TensorFlow checkpoint is
    named by what its files begin with, shards by their index, whether it was written or not."""
    try:
        if os.path.isdir(path):
            return _sum(_files_below(path), os.stat(path).st_mtime)
        if os.path.exists(path):
            found = os.stat(path)
            return found.st_size, found.st_mtime
        folder, base = os.path.split(path)
        mine: tuple[str, ...] = (f"{base}.index", f"{base}.data-")
        if shards.is_index(base):
            mine = (f"{shards.begins(base)}-",)
        files = [os.path.join(folder, n) for n in os.listdir(folder) if n.startswith(mine)]
        return _sum(files, 0.0) if files else None
    except OSError:
        return None


def _files_below(path: str) -> list[str]:
    files: list[str] = []
    for folder, _, names in os.walk(path):
        files += (os.path.join(folder, name) for name in names)
        if len(files) > _MOST_FILES:
            break
    return files


def _sum(files: list[str], newest: float) -> tuple[int, float]:
    size = 0
    for file in files:
        try:
            found = os.stat(file)
        except OSError:
            continue
        size += found.st_size
        newest = max(newest, found.st_mtime)
    return size, newest
