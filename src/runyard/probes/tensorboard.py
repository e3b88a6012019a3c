"""Scalars out of TensorBoard event files, as far as they are written; standard library only.

A file is a row of records: length, its checksum, data, its checksum. The data is a protobuf
message of which only time, step, tag and a single number matter here.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from itertools import islice

from runyard.domain.monitoring.series import Sample
from runyard.probes.base import EventReading

_MARK = "tfevents"
_MOST_ENTRIES = 5000  # looked at in one folder tree
_MOST_FILES = 64
_DEEPEST = 6
_LONGEST_RECORD = 16 * 2**20  # images and graphs may be large; they are stepped over
_HEAD = struct.Struct("<QI")
_FOOT = 4
_FLOAT, _DOUBLE = 1, 2  # types of tensors
_SLACK_S = 5.0


class TensorBoardFiles:
    """See probes/base.py for the promises."""

    def find(self, folder: str, since: float) -> list[str]:
        """Folders of millions of files are not looked through: only so many entries are."""
        found: list[str] = []
        left = _MOST_ENTRIES
        folders = [(folder, 0)]
        while folders and left > 0 and len(found) < _MOST_FILES:
            parent, depth = folders.pop(0)
            try:
                with os.scandir(parent) as entries:
                    here = list(islice(entries, left))
            except OSError:
                continue
            left -= len(here)
            for entry in sorted(here, key=lambda entry: entry.name):
                if _MARK in entry.name and _is_file_since(entry.path, since):
                    found.append(entry.path)
                elif depth < _DEEPEST and _is_folder(entry):
                    folders.append((entry.path, depth + 1))
        return found[:_MOST_FILES]

    def read(self, path: str, offset: int, since: float, most: int) -> EventReading:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return EventReading([], offset, False)
        try:
            return _read(handle, offset, since, most)
        except OSError:
            return EventReading([], offset, False)
        finally:
            os.close(handle)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)


def _is_file_since(path: str, since: float) -> bool:
    try:
        info = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_mtime >= since - _SLACK_S


def _read(handle: int, offset: int, since: float, most: int) -> EventReading:
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode):
        return EventReading([], offset, False)
    if info.st_size < offset:  # it was written anew
        offset = 0
    samples: list[Sample] = []
    end = offset + most
    while offset < end:
        head = os.pread(handle, _HEAD.size, offset)
        if len(head) < _HEAD.size:
            return EventReading(samples, offset, False)
        length, checksum = _HEAD.unpack(head)
        if checksum != _masked(head[:8]):
            # Not such a file, or damaged: what follows cannot be found.
            return EventReading(samples, info.st_size, False)
        following = offset + _HEAD.size + length + _FOOT
        if following > info.st_size:
            return EventReading(samples, offset, False)
        if length <= _LONGEST_RECORD:
            data = os.pread(handle, length, offset + _HEAD.size)
            samples += [one for one in _scalars(data) if one.at >= since - _SLACK_S]
        offset = following
    return EventReading(samples, offset, offset < info.st_size)


def _scalars(data: bytes) -> list[Sample]:
    """Of one event; none if it cannot be understood."""
    try:
        at, step, found = 0.0, 0, []
        for number, value in _fields(data):
            if number == 1 and isinstance(value, bytes) and len(value) == 8:
                (at,) = struct.unpack("<d", value)
            elif number == 2 and isinstance(value, int):
                step = value
            elif number == 5 and isinstance(value, bytes):
                found += [_scalar(one) for kind, one in _fields(value) if kind == 1]
    except (ValueError, struct.error, UnicodeDecodeError):
        return []
    known = step if 0 <= step < 2**63 else None
    return [Sample(tag, at, value, known) for tag, value in filter(None, found)]


def _scalar(data: int | bytes) -> tuple[str, float] | None:
    if not isinstance(data, bytes):
        return None
    tag, number = "", None
    for kind, value in _fields(data):
        if kind == 1 and isinstance(value, bytes):
            tag = value.decode()
        elif kind == 2 and isinstance(value, bytes) and len(value) == 4:
            (number,) = struct.unpack("<f", value)
        elif kind == 8 and isinstance(value, bytes):
            number = _single_number(value)
    return (tag, number) if tag and number is not None else None


def _single_number(tensor: bytes) -> float | None:
    """The value of a tensor of one float; None for every other one."""
    kind, content = 0, b""
    for number, value in _fields(tensor):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in (4, 5, 6) and isinstance(value, bytes):
            content += value
    form = {_FLOAT: "<f", _DOUBLE: "<d"}.get(kind)
    if form is None or len(content) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, content)[0])


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of a message; ValueError where it is none."""
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield number, value
            continue
        if kind == 2:
            length, place = _varint(data, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError("groups are not used")
        if place + length > end:
            raise ValueError("cut off")
        yield number, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError("cut off")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _checksums() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _checksums()


def _masked(data: bytes) -> int:
    """The checksum (CRC-32C) as these files keep it."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF
