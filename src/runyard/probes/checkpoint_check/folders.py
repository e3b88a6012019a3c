"""A checkpoint that is a folder: told apart by what is in it, and complete by its own rules."""

from __future__ import annotations

import os
import re
from typing import Any

from runyard.probes.checkpoint_check import single_files
from runyard.probes.checkpoint_check.verdicts import Flaw, Unproven, is_unfinished, listed

_TRAINER_STATE = "trainer_state.json"
_INDEX_END = (".safetensors.index.json", ".bin.index.json")
_WEIGHTS = re.compile(
    r"((adapter_|diffusion_pytorch_|flax_|tf_|pytorch_)?model|weights|consolidated)"
    r".*\.(safetensors|bin|pt|pth|msgpack|h5)$"
)
_SHARDED_FOLDER = re.compile(r"(global_step\d+|pytorch_model_fsdp_\d+)$")
_DATA_PART = re.compile(r"\.data-(\d{5})-of-(\d{5})$")
_ORBAX_MARKS = ("_CHECKPOINT_METADATA", "commit_success.txt", "_METADATA", "manifest.ocdbt")
_ORBAX_ITEMS = ("default", "state", "params", "metadata")
_MOST_DEEP = 4
_MOST_FILES = 20_000


def family(path: str) -> str:
    names = set(listed(path))
    if _TRAINER_STATE in names or re.fullmatch(r"checkpoint-\d+", os.path.basename(path)):
        return "huggingface"
    if any(_has_orbax_mark(os.path.join(path, item)) for item in ("", *_ORBAX_ITEMS)):
        return "orbax"
    if any(name.endswith(".index") for name in names) or "saved_model.pb" in names:
        return "tensorflow"
    if ".metadata" in names or any(name.endswith(".distcp") for name in names):
        return "torch"
    if any(name.endswith(".safetensors") for name in names):
        return "safetensors"
    return "folder"


def _has_orbax_mark(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, mark)) for mark in _ORBAX_MARKS)


def check(path: str, kind: str) -> int | None:
    """Raises Flaw or Unproven; the step, where the checkpoint itself tells it."""
    names = listed(path)
    if not any(not is_unfinished(name) for name in names):
        raise Flaw("empty_folder")
    step, unproven = None, None
    if kind == "huggingface":
        step = _huggingface(path, names)
    elif kind == "orbax":
        _orbax(path, names)
    elif kind == "tensorflow":
        tensorflow(path, names)
    elif ".metadata" in names:
        _distributed_torch(path, names)
    elif not any(name.lower().endswith(single_files.KNOWN_ENDS) for name in names):
        unproven = Unproven("format_not_checked")
    _indexes(path, names)
    _every_file(path)
    if unproven is not None:
        raise unproven
    return step


def _huggingface(path: str, names: list[str]) -> int:
    if not any(_WEIGHTS.match(name) or _SHARDED_FOLDER.match(name) for name in names) and not any(
        name.endswith(_INDEX_END) for name in names
    ):
        raise Flaw("missing_file", file="model.safetensors")
    # Written after the weights and the optimizer: without it the save was not finished.
    state = single_files.read_json(os.path.join(path, _TRAINER_STATE))
    step = state.get("global_step") if isinstance(state, dict) else None
    if not isinstance(step, int) or isinstance(step, bool):
        raise Flaw("damaged", file=_TRAINER_STATE)
    return step


def _orbax(path: str, names: list[str]) -> None:
    """Orbax writes aside and renames; on object stores it leaves a mark instead. Either way a
    finished one has metadata in it or in one of its items."""
    if any(is_unfinished(name) for name in names):
        raise Flaw("unfinished")
    if not any(_has_orbax_mark(os.path.join(path, item)) for item in ("", *names)):
        raise Flaw("missing_file", file=_ORBAX_MARKS[0])


def tensorflow(path: str, names: list[str], prefix: str = "") -> None:
    """Each `X.index` needs all of its `X.data-00000-of-0000N`."""
    if "saved_model.pb" in names:
        variables = os.path.join(path, "variables")
        if os.path.isdir(variables):
            tensorflow(variables, listed(variables))
        return
    bases = [name[: -len(".index")] for name in names if name.endswith(".index")]
    bases = [base for base in bases if not prefix or base == prefix]
    if not bases:
        raise Flaw("missing_file", file=f"{prefix or 'checkpoint'}.index")
    for base in bases:
        _data_parts(path, names, base)


def _data_parts(path: str, names: list[str], base: str) -> None:
    parts: dict[int, int] = {}
    for name in names:
        found = _DATA_PART.search(name)
        if found and name[: found.start()] == base:
            parts[int(found[1])] = int(found[2])
            if os.path.getsize(os.path.join(path, name)) == 0:
                raise Flaw("empty_file", file=name)
    count = max(parts.values(), default=1)
    for number in range(count):
        if number not in parts:
            raise Flaw("missing_file", file=f"{base}.data-{number:05}-of-{count:05}")


def _distributed_torch(path: str, names: list[str]) -> None:
    if os.path.getsize(os.path.join(path, ".metadata")) == 0:
        raise Flaw("empty_file", file=".metadata")
    if not any(name.endswith(".distcp") for name in names):
        raise Flaw("missing_file", file="__0_0.distcp")


def _indexes(path: str, names: list[str]) -> None:
    """The parts that an index names must be there, with the tensors it says they hold."""
    for name in names:
        if is_index(name):
            check_index(os.path.join(path, name))


def is_index(path: str) -> bool:
    return path.endswith(_INDEX_END)


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
            _one(file)


def _by_part(weights: dict[str, Any], name: str) -> dict[str, set[str]]:
    parts: dict[str, set[str]] = {}
    for tensor, part in weights.items():
        if not isinstance(part, str) or os.path.isabs(part) or ".." in part.split("/"):
            raise Flaw("damaged", file=name)
        parts.setdefault(part, set()).add(tensor)
    return parts


def _every_file(path: str) -> None:
    """What has a format that can be checked is checked; a folder of links is not left."""
    count = 0
    for folder, below, names in os.walk(path):
        if folder[len(path) :].count(os.sep) >= _MOST_DEEP:
            below.clear()
        for name in names:
            count += 1
            if count > _MOST_FILES:
                return
            if is_unfinished(name):
                continue
            if name.lower().endswith(single_files.KNOWN_ENDS):
                _one(os.path.join(folder, name))


def _one(file: str) -> None:
    try:
        single_files.check(file)
    except Unproven:
        return  # a pickle of arguments or of the random state among files that are proven
