"""Writes TensorBoard event files byte by byte, for tests."""

from __future__ import annotations

import base64
import struct
from pathlib import Path


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def chunk(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(at: float, step: int, *values: bytes) -> bytes:
    summary = b"".join(chunk(1, value) for value in values)
    head = b"\x09" + struct.pack("<d", at) + b"\x10" + varint(step)
    return record(head + chunk(5, summary))


def version(at: float) -> bytes:
    return record(b"\x09" + struct.pack("<d", at) + chunk(3, b"brain.Event:2"))


def scalar(tag: str, value: float) -> bytes:
    return chunk(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(tag: str, value: float, *, packed: bool = False, double: bool = False) -> bytes:
    form, kind, field = ("<d", 2, 6) if double else ("<f", 1, 5)
    content = struct.pack(form, value)
    body = b"\x08" + varint(kind) + chunk(2, b"") + chunk(field if packed else 4, content)
    return chunk(1, tag.encode()) + chunk(8, body)


def image(tag: str, size: int) -> bytes:
    return chunk(1, tag.encode()) + chunk(4, b"\0" * size)


def recorded(folder: Path) -> Path:
    """A file that tensorboardX wrote: 21 scalars from 1,790,000,000 on, a text, a histogram."""
    text = (Path(__file__).parent / "tensorboardx_events.base64").read_text()
    path = folder / "events.out.tfevents.1790000000.host"
    path.write_bytes(base64.b64decode(text))
    return path
