"""A model in several files: their names say how many there are, an index which tensor is where."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import Any

from runyard.probes.checkpoint_check import single_files
from runyard.probes.checkpoint_check.verdicts import Flaw, Unproven

INDEX_END = (".safetensors.index.json", ".bin.index.json")
_SHARD = re.compile(r"(.{0,300}?)-?(\d{5})-of-(\d{5})(\.safetensors|\.bin)")
_Set = tuple[str, str, str]  # what its names begin with, how many they promise, how they end


def is_index(path: str) -> bool:
    return path.endswith(INDEX_END)


def begins(index: str) -> str:
    """What the shards of that index begin with."""
    return next(index.removesuffix(end) for end in INDEX_END if index.endswith(end))


def check(folder: str, names: list[str]) -> None:
    """Raises Flaw where a file is not there that an index or the names of others promise, and
    Unproven where only the index is missing: it is written last, but not by every program."""
    for name in names:
        if is_index(name):
            check_index(os.path.join(folder, name))
    numbered = _numbered(names)
    for one, numbers in numbered.items():
        _all_there(one, numbers)
    if numbered and not any(is_index(name) for name in names):
        raise Unproven("format_not_checked")


def _numbered(names: list[str]) -> dict[_Set, set[int]]:
    sets: dict[_Set, set[int]] = defaultdict(set)
    for name in names:
        found = _SHARD.fullmatch(name)
        if found is not None:
            sets[found[1], found[3], found[4]].add(int(found[2]))
    return sets


def _all_there(one: _Set, numbers: set[int]) -> None:
    first, promised, end = one
    start = 0 if 0 in numbers else 1
    for number in range(start, start + int(promised)):
        if number not in numbers:
            before = f"{first}-" if first else ""
            raise Flaw("missing_file", file=f"{before}{number:05}-of-{promised}{end}")


def check_index(place: str) -> None:
    path, name = os.path.split(place)
    index = single_files.read_json(place)
    weights = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weights, dict) or not weights:
        raise Flaw("damaged", file=name)
    for part, tensors in _by_part(weights, name).items():
        file = os.path.join(path, part)
        if not os.path.isfile(file):
            raise Flaw("missing_file", file=part)
        if part.endswith(".safetensors"):
            if not tensors <= single_files.tensors_of(file):
                raise Flaw("missing_tensors", file=part)
        else:
            single_files.check_among_others(file)


def _by_part(weights: dict[str, Any], name: str) -> dict[str, set[str]]:
    parts: dict[str, set[str]] = {}
    for tensor, part in weights.items():
        if not isinstance(part, str) or os.path.isabs(part) or ".." in part.split("/"):
            raise Flaw("damaged", file=name)
        parts.setdefault(part, set()).add(tensor)
    return parts
