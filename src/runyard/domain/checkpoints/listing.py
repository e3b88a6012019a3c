"""Checkpoints in a listing of files: which files belong to one, and what kind it is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from runyard.domain.checkpoints import step_names


class Kind(StrEnum):
    HUGGINGFACE = "huggingface"  # a directory checkpoint-N
    LIGHTNING = "lightning"  # .ckpt, a file or a directory of shards
    TORCH = "torch"  # .pt, .pth, .bin
    SAFETENSORS = "safetensors"
    SHARDED_SAFETENSORS = "sharded_safetensors"  # an index and its shards
    DISTRIBUTED = "distributed"  # a directory of torch shards with .metadata
    DEEPSPEED = "deepspeed"  # a directory global_stepN
    MEGATRON = "megatron"  # a directory iter_N
    ORBAX = "orbax"  # a directory named by its step
    TENSORFLOW = "tensorflow"  # NAME.index with its data files, or a saved model
    KERAS = "keras"  # .keras, .h5
    OTHER = "other"  # found by the pattern of the job


@dataclass(frozen=True, slots=True)
class Listed:
    """A file below the checkpoint directory; `path` is relative to it, with slashes."""

    path: str
    size: int
    mtime: float


@dataclass(frozen=True, slots=True)
class Found:
    """One checkpoint, whole or not. `path` is what a program resumes from; `parts` are all its
    files that are there."""

    path: str
    kind: Kind
    step: int | None
    epoch: int | None
    size: int
    mtime: float  # of its newest part
    parts: tuple[str, ...]


_UNFINISHED = re.compile(
    r"(?:^|/)(?:\.partial-|tmp-checkpoint-|\.tmp)|\.(?:tmp|part|partial|incomplete|lock)(?:/|$)"
    r"|\.orbax-checkpoint-tmp|\.distcp\.tmp|(?:^|/)__pycache__/"
)
_BESIDE = (".manifest.json", ".sha256", ".md5", ".json.tmp")
_HF = re.compile(r"checkpoint-(\d{1,12})$")
_DEEPSPEED = re.compile(r"global_step(\d{1,12})$")
_MEGATRON = re.compile(r"iter_(\d{1,12})$")
_ORBAX_MARKS = ("_CHECKPOINT_METADATA", "_METADATA", "commit_success.txt", "manifest.ocdbt")
_SHARD = re.compile(r"(.{0,300}?)-?\d{5}-of-\d{5}\.safetensors")
_TF_DATA = re.compile(r"(.{1,300})\.data-\d{5}-of-\d{5}$")
_FILES = {
    ".ckpt": Kind.LIGHTNING,
    ".pt": Kind.TORCH,
    ".pth": Kind.TORCH,
    ".bin": Kind.TORCH,
    ".safetensors": Kind.SAFETENSORS,
    ".keras": Kind.KERAS,
    ".h5": Kind.KERAS,
    ".hdf5": Kind.KERAS,
}
# Parts of something, never a checkpoint to resume from.
_NO_CHECKPOINT = frozenset(
    {"optimizer.pt", "scheduler.pt", "scaler.pt", "training_args.bin", "rng_state.pth"}
)


def find(listing: Sequence[Listed], pattern: str | None = None) -> tuple[Found, ...]:
    """All checkpoints, oldest first. With `pattern` (as the job gives it, matched with the whole
    path or its last part) only those, whatever they are."""
    files = [one for one in listing if not _is_unfinished(one.path)]
    taken: set[str] = set()
    found: list[Found] = []
    for look in (_directories, _tensorflow, _sharded, _single):
        for one in look([file for file in files if file.path not in taken]):
            taken.update(one.parts)
            found.append(one)
    if pattern is not None:
        found = [one for one in found if _fits(one.path, pattern)]
        rest = [file for file in files if file.path not in taken]
        found += _by_pattern(rest, pattern)
    return tuple(sorted(found, key=lambda one: (one.mtime, one.step or 0, one.path)))


def _is_unfinished(path: str) -> bool:
    return _UNFINISHED.search(path) is not None or path.endswith(_BESIDE)


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern)


def _by_pattern(files: Iterable[Listed], pattern: str) -> list[Found]:
    """Files that match, and directories that match with all that is in them."""
    groups: dict[str, list[Listed]] = defaultdict(list)
    for file in files:
        for path in (*_parents(file.path), file.path):
            if _fits(path, pattern):
                groups[path].append(file)
                break
    return [_made(path, Kind.OTHER, parts) for path, parts in groups.items()]


def _parents(path: str) -> list[str]:
    """Directories above, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _directories(files: Sequence[Listed]) -> list[Found]:
    inside: dict[str, list[Listed]] = defaultdict(list)
    for file in files:
        for parent in _parents(file.path):
            inside[parent].append(file)
    found: list[Found] = []
    done: list[str] = []
    for path in sorted(inside, key=lambda one: one.count("/")):
        if any(path.startswith(f"{other}/") for other in done):
            continue
        kind = _directory_kind(path, inside[path])
        if kind is not None:
            done.append(path)
            found.append(_made(path, kind, inside[path]))
    return found


def _directory_kind(path: str, inside: Sequence[Listed]) -> Kind | None:
    name = path.rpartition("/")[2]
    own = {file.path[len(path) + 1 :] for file in inside}
    if _HF.fullmatch(name):
        return Kind.HUGGINGFACE
    if name.endswith(".ckpt"):
        return Kind.LIGHTNING
    if _DEEPSPEED.fullmatch(name):
        return Kind.DEEPSPEED
    if _MEGATRON.fullmatch(name):
        return Kind.MEGATRON
    if ".metadata" in own or any(one.endswith(".distcp") for one in own):
        return Kind.DISTRIBUTED
    if "saved_model.pb" in own:
        return Kind.TENSORFLOW
    if any(mark in own for mark in _ORBAX_MARKS):
        return Kind.ORBAX
    below = {one.rpartition("/")[2] for one in own}
    if name.isdigit() and below & {*_ORBAX_MARKS, "array_metadatas", "_sharding"}:
        return Kind.ORBAX
    return None


def _tensorflow(files: Sequence[Listed]) -> list[Found]:
    by_path = {file.path: file for file in files}
    data: dict[str, list[Listed]] = defaultdict(list)
    for file in files:
        match = _TF_DATA.fullmatch(file.path)
        if match is not None:
            data[match[1]].append(file)
    found = []
    for name, parts in data.items():
        beside = (by_path.get(f"{name}{end}") for end in (".index", ".meta"))
        own = [*parts, *(file for file in beside if file is not None)]
        found.append(_made(name, Kind.TENSORFLOW, own))
    return found


def _sharded(files: Sequence[Listed]) -> list[Found]:
    """A directory, or the files beside an index, that hold one model in shards."""
    groups: dict[tuple[str, str], list[Listed]] = defaultdict(list)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        shard = _SHARD.fullmatch(name)
        if shard is not None:
            groups[folder, shard[1]].append(file)
    found = []
    known = {file.path: file for file in files}
    for (folder, stem), shards in groups.items():
        index = f"{folder}/{stem}" if folder else stem
        index += ".safetensors.index.json"
        parts = [*shards, *([known[index]] if index in known else [])]
        found.append(_made(folder or index, Kind.SHARDED_SAFETENSORS, parts))
    return found


def _single(files: Sequence[Listed]) -> list[Found]:
    found = []
    for file in files:
        name = file.path.rpartition("/")[2]
        kind = next((kind for end, kind in _FILES.items() if name.endswith(end)), None)
        if kind is not None and name not in _NO_CHECKPOINT and not name.startswith("rng_state_"):
            found.append(_made(file.path, kind, [file]))
    return found


def _made(path: str, kind: Kind, parts: Sequence[Listed]) -> Found:
    step, epoch = step_names.read(path)
    return Found(
        path,
        kind,
        step,
        epoch,
        sum(file.size for file in parts),
        max(file.mtime for file in parts),
        tuple(sorted(file.path for file in parts)),
    )
