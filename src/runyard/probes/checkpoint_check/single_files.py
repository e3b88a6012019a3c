"""One file: whether it is whole, told by its own format and without loading what is in it."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

from runyard.probes.checkpoint_check.verdicts import Flaw, Unproven, size_of

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature ... length of the name, of the extra field
_LONGEST_HEADER = 100_000_000  # of a safetensors file, by its format
_BLOCK = 1 << 20
_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIPPED = (".pt", ".pth", ".ckpt", ".bin", ".keras", ".npz", ".zip", ".distcp")
KNOWN_ENDS = (*_ZIPPED, ".safetensors", ".h5", ".hdf5", ".json")


def check(path: str) -> None:
    """Raises Flaw or Unproven."""
    size = size_of(path)
    name = os.path.basename(path)
    if size == 0:
        raise Flaw("empty_file", file=name)
    lowered = name.lower()
    if lowered.endswith(".safetensors"):
        tensors_of(path)
    elif lowered.endswith(".json"):
        read_json(path)
    else:
        _by_content(path, name, size)


def check_among_others(path: str) -> None:
    """One that proves nothing is no flaw: the arguments or the random state, pickled beside
    files that are proven."""
    try:
        check(path)
    except Unproven:
        return


def _by_content(path: str, name: str, size: int) -> None:
    with _open(path) as file:
        start = file.read(8)
        if start.startswith(b"PK"):
            _check_zip(file, name)
        elif start == _HDF5:
            _check_hdf5(file, name, size)
        elif not start.strip(b"\0") and _is_all_zero(file):
            raise Flaw("only_zeros", file=name)
        elif name.lower().endswith((".keras", ".npz", ".h5", ".hdf5")):
            raise Flaw("wrong_format", file=name)
        else:  # a pickle, or a format of the program's own
            raise Unproven("format_not_checked", file=name)


def _open(path: str) -> Any:
    try:
        return open(path, "rb")
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Flaw("unreadable", file=os.path.basename(path), error=why) from None


def _check_zip(file: Any, name: str) -> None:
    """Its directory is at its end, so a truncated file has none; and every record that the
    directory names must begin with its header and fit in front of it."""
    try:
        with zipfile.ZipFile(file) as opened:
            entries, directory = opened.infolist(), opened.start_dir
            if not entries:
                raise Flaw("empty_file", file=name)
            for entry in entries:
                file.seek(entry.header_offset)
                header = file.read(_LOCAL_HEADER.size)
                if len(header) < _LOCAL_HEADER.size:
                    raise Flaw("truncated", file=name)
                signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
                if signature != b"PK\x03\x04":
                    raise Flaw("damaged", file=name, record=entry.filename[:200])
                begin = entry.header_offset + _LOCAL_HEADER.size + name_length + extra_length
                if begin + entry.compress_size > directory:
                    raise Flaw("truncated", file=name)
    except (zipfile.BadZipFile, EOFError):
        raise Flaw("truncated", file=name) from None
    except (OSError, NotImplementedError, ValueError, struct.error) as error:
        raise Flaw("damaged", file=name, error=type(error).__name__) from None


def _check_hdf5(file: Any, name: str, size: int) -> None:
    file.seek(0)
    head = file.read(64)
    place = {0: 40, 1: 44, 2: 28, 3: 28}.get(head[8] if len(head) > 8 else -1)
    offsets = head[13] if len(head) > 13 and head[8] < 2 else (head[9] if len(head) > 9 else 0)
    if place is None or offsets != 8 or len(head) < place + 8:
        raise Unproven("format_not_checked", file=name)
    end = int.from_bytes(head[place : place + 8], "little")
    if size < end:
        raise Flaw("truncated", file=name, size=size, expected=end)


def _is_all_zero(file: Any) -> bool:
    """As a power cut can leave it: the length is there, the bytes are not. The first and the
    last block are looked at."""
    file.seek(0)
    first = file.read(_BLOCK)
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _BLOCK))
    return not first.strip(b"\0") and not file.read(_BLOCK).strip(b"\0")


def tensors_of(path: str) -> frozenset[str]:
    """The names of the tensors in a safetensors file whose header and length agree."""
    name, size = os.path.basename(path), size_of(path)
    with _open(path) as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > _LONGEST_HEADER or 8 + length > size:
            raise Flaw("truncated" if length <= _LONGEST_HEADER else "damaged", file=name)
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError):
            raise Flaw("damaged", file=name) from None
    if not isinstance(header, dict):
        raise Flaw("damaged", file=name)
    tensors = {key: value for key, value in header.items() if key != "__metadata__"}
    end = max((_end_of(value, name) for value in tensors.values()), default=0)
    if 8 + length + end != size:
        code = "truncated" if size < 8 + length + end else "damaged"
        raise Flaw(code, file=name, size=size, expected=8 + length + end)
    return frozenset(tensors)


def _end_of(described: Any, name: str) -> int:
    offsets = described.get("data_offsets") if isinstance(described, Mapping) else None
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(isinstance(one, int) and not isinstance(one, bool) for one in offsets)
        or not 0 <= offsets[0] <= offsets[1]
    ):
        raise Flaw("damaged", file=name)
    return int(offsets[1])


def read_json(path: str) -> Any:
    name, size = os.path.basename(path), size_of(path)
    if size > 1 << 28:
        raise Unproven("format_not_checked", file=name)
    with _open(path) as file:
        try:
            return json.loads(file.read())
        except (ValueError, RecursionError):
            raise Flaw("damaged" if size else "empty_file", file=name) from None
