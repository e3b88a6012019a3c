"""A checkpoint that is a folder: told apart by what is in it, and complete by its own rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from runyard.probes.checkpoint_check import shards, single_files
from runyard.probes.checkpoint_check.verdicts import Flaw, Unproven, is_unfinished, listed, size_of

_TRAINER_STATE = "trainer_state.json"
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
    elif ".metadata" in names or any(name.endswith(".distcp") for name in names):
        _distributed_torch(path, names)
    elif not any(name.lower().endswith(single_files.KNOWN_ENDS) for name in names):
        unproven = Unproven("format_not_checked")
    for folder, files in _folders(path):
        try:
            shards.check(folder, files)
        except Unproven as found:
            unproven = found
        _every_file(folder, files)
    if unproven is not None:
        raise unproven
    return step


def _huggingface(path: str, names: list[str]) -> int:
    if not any(_WEIGHTS.match(name) or _SHARDED_FOLDER.match(name) for name in names) and not any(
        name.endswith(shards.INDEX_END) for name in names
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
    """The metadata are written last, when all parts are there."""
    if size_of(os.path.join(path, ".metadata")) == 0:
        raise Flaw("empty_file", file=".metadata")
    if not any(name.endswith(".distcp") for name in names):
        raise Flaw("missing_file", file="__0_0.distcp")


def _folders(path: str) -> Iterator[tuple[str, list[str]]]:
    """It and those below, with their files; a folder of links is not left."""
    count = 0
    for folder, below, names in os.walk(path):
        if folder[len(path) :].count(os.sep) >= _MOST_DEEP:
            below.clear()
        yield folder, [name for name in names if not is_unfinished(name)]
        count += len(names)
        if count > _MOST_FILES:
            return


def _every_file(folder: str, names: list[str]) -> None:
    """What has a format that can be checked is checked."""
    for name in names:
        if name.lower().endswith(single_files.KNOWN_ENDS):
            single_files.check_among_others(os.path.join(folder, name))
