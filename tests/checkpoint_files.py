"""Checkpoints as the frameworks write them, made without the frameworks."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path


def torch_file(path: Path, *, step: int = 0, size: int = 20_000) -> Path:
    """A file as `torch.save` writes it: a zip of stored records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        name = path.stem
        file.writestr(f"{name}/data.pkl", b"\x80\x02}q\x00." + str(step).encode())
        file.writestr(f"{name}/version", "3\n")
        for number in range(3):
            file.writestr(f"{name}/data/{number}", bytes([number + 1]) * (size // 3))
    return path


def truncate(path: Path, part: float = 0.5) -> Path:
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * part))
    return path


def safetensors_file(path: Path, names: tuple[str, ...] = ("weight",), size: int = 400) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"__metadata__": {"format": "pt"}}
    for place, name in enumerate(names):
        header[name] = {
            "dtype": "U8",
            "shape": [size],
            "data_offsets": [place * size, (place + 1) * size],
        }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\7" * (size * len(names)))
    return path


def huggingface_folder(path: Path, step: int, *, sharded: bool = False) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    if sharded:
        parts = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
        for tensor, part in parts.items():
            safetensors_file(path / part, (tensor,))
        index = {"metadata": {"total_size": 800}, "weight_map": parts}
        (path / "model.safetensors.index.json").write_text(json.dumps(index))
    else:
        safetensors_file(path / "model.safetensors")
    torch_file(path / "optimizer.pt")
    (path / "training_args.bin").write_bytes(b"\x80\x04K\x01.")
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step, "epoch": 1.0}))
    return path


def index_of_shards(folder: Path, first: str = "model") -> Path:
    """The index of shards that hold one tensor each: `t1` is in the first."""
    parts = {
        f"t{int(part.stem.split('-')[-3])}": part.name
        for part in folder.glob(f"{first}-*-of-*.safetensors")
    }
    index = folder / f"{first}.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 400}, "weight_map": parts}))
    return index


def tensorflow_files(folder: Path, name: str, parts: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.index").write_bytes(b"index")
    for number in range(parts):
        (folder / f"{name}.data-{number:05}-of-{parts:05}").write_bytes(b"data")
    return folder / name


def orbax_folder(path: Path) -> Path:
    (path / "default" / "d").mkdir(parents=True)
    (path / "default" / "_METADATA").write_text("{}")
    (path / "default" / "manifest.ocdbt").write_bytes(b"manifest")
    (path / "default" / "d" / "0123").write_bytes(b"data")
    (path / "_CHECKPOINT_METADATA").write_text("{}")
    return path
