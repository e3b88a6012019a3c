"""The journal of an attempt: one append-only file of checksummed records.

Each line is `<crc32 hex> <compact json>`. Appending is done under an OFD lock; the exit record is
the last one and the first writer of it wins. Only main_exit and exit are synced to disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runyard.supervisor import protocol, rank_records

Record = dict[str, Any]

_READ_SIZE = 1 << 18

_encode_json = json.JSONEncoder(separators=(",", ":")).encode
_APPEND_LOCK = struct.pack("hhqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, protocol.APPEND_BYTE, 1, 0)
_APPEND_UNLOCK = struct.pack("hhqqixxxx", fcntl.F_UNLCK, os.SEEK_SET, protocol.APPEND_BYTE, 1, 0)


class Journal:
    """What a journal says. Damaged records are counted and otherwise ignored, as is a torn last
    one; `foreign` counts whole records of a version that this code does not know."""

    __slots__ = ("damaged", "foreign", "records", "size", "torn")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.size = 0
        self.torn = False
        self.damaged = 0
        self.foreign = 0

    @property
    def spec(self) -> Record | None:
        return self.first("spec")

    @property
    def supervisor(self) -> Record | None:
        return self.first("supervisor")

    @property
    def job(self) -> Record | None:
        return self.first("job")

    @property
    def first_process(self) -> Record | None:
        """The identity of what ran first of the attempt: its first service, else its main."""
        return self.first("service") or self.job

    @property
    def group(self) -> Record | None:
        return self.first("cgroup")

    @property
    def main_exit(self) -> Record | None:
        """The end of main; of several ranks that which is the attempt's, once it is known."""
        ranks = (self.spec or {}).get("ranks")
        return rank_records.deciding(self, len(ranks)) if ranks else self.first("main_exit")

    @property
    def exit(self) -> Record | None:
        return self.first("exit")

    @property
    def stuck(self) -> Record | None:
        return self.last("stuck")

    @property
    def log_holes(self) -> list[Record]:
        return [record for record in self.records if record["kind"] == "log_hole"]

    def first(self, kind: str) -> Record | None:
        for record in self.records:
            if record["kind"] == kind:
                return record
        return None

    def last(self, kind: str) -> Record | None:
        for record in reversed(self.records):
            if record["kind"] == kind:
                return record
        return None

    def add(self, record: Record, length: int) -> None:
        """Take in a record just appended behind the part already known."""
        self.records.append(record)
        self.size += length
        self.torn = False

    def feed(self, data: bytes) -> None:
        """Take in what was appended behind the part already known."""
        self.size += len(data)
        lines = data.split(b"\n")
        self.torn = bool(lines[-1])
        for number, line in enumerate(lines):
            # A last record that lacks only its end of line is whole: the checksum says so.
            record = decode(line)
            if record is None:
                self.damaged += bool(line) and number < len(lines) - 1
            elif record["v"] == protocol.VERSION:
                self.records.append(record)
            else:
                self.foreign += 1


def new_record(kind: str, fields: Mapping[str, Any]) -> Record:
    return {"v": protocol.VERSION, "kind": kind, "time": time.time(), **fields}


def encode(record: Record) -> bytes:
    data = _encode_json(record).encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def decode(line: bytes) -> Record | None:
    """The record of one line, of whatever version, or None where it cannot be trusted."""
    try:
        if int(line[:8], 16) != zlib.crc32(line[9:]):
            return None
        record = json.loads(line[9:])
        if not isinstance(record["v"], int) or not isinstance(record["kind"], str):
            return None
    except (ValueError, KeyError, TypeError):
        return None
    return record  # type: ignore[no-any-return]


def create(folder: str, spec: Mapping[str, Any]) -> bool:
    """Make the attempt's folder and its journal with the spec record; False if it was there."""
    path = f"{folder}/{protocol.JOURNAL}"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(folder, 0o700, exist_ok=True)
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError:
        return _complete_creation(folder, spec)
    try:
        _write_all(fd, encode(new_record("spec", spec)), 0)
    finally:
        os.close(fd)
    return True


def refuse(folder: str, fields: Mapping[str, Any]) -> bool:
    """Close an attempt of which nothing was handed over, for good: whoever hands it over later
    finds its exit record. False if it was handed over in the meantime."""
    os.makedirs(folder, 0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    fd = os.open(f"{folder}/{protocol.JOURNAL}", flags, 0o600)
    try:
        appender = Appender(fd)
        return appender.append(
            "exit", fields, sync=True, unless=lambda: appender.journal.spec is not None
        )
    finally:
        os.close(fd)


def read(folder: str) -> Journal:
    """FileNotFoundError where there is no journal."""
    fd = os.open(f"{folder}/{protocol.JOURNAL}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_open(fd)
    finally:
        os.close(fd)


def read_open(fd: int) -> Journal:
    journal = Journal()
    journal.feed(_read_from(fd, 0))
    return journal


class Appender:
    """Appends to one journal through one descriptor, which it does not own."""

    __slots__ = ("fd", "journal")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.journal = Journal()

    def refresh(self) -> Journal:
        """Take in what others have appended."""
        if self.journal.torn:
            self.journal = Journal()
        if os.fstat(self.fd).st_size > self.journal.size:
            self.journal.feed(_read_from(self.fd, self.journal.size))
        return self.journal

    def append(
        self,
        kind: str,
        fields: Mapping[str, Any],
        *,
        once: bool = False,
        sync: bool = False,
        unless: Callable[[], bool] | None = None,
    ) -> bool:
        """Append a record; False if the attempt has its exit record, if `once` and there is one of
        this kind, or if `unless` says so while nobody else can append."""
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLKW, _APPEND_LOCK)
        try:
            journal = self.refresh()
            if journal.exit is not None or (once and journal.first(kind) is not None):
                return False
            if unless is not None and unless():
                return False
            record = new_record(kind, fields)
            line = encode(record)
            data = b"\n" + line if journal.torn else line
            _write_all(self.fd, data, journal.size)
            journal.add(record, len(data))
        finally:
            fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, _APPEND_UNLOCK)
        if sync:
            os.fdatasync(self.fd)
        return True


def append(
    folder: str,
    kind: str,
    fields: Mapping[str, Any],
    *,
    once: bool = False,
    sync: bool = False,
    unless: Callable[[], bool] | None = None,
) -> bool:
    """Append one record from outside."""
    with opened(folder) as appender:
        return appender.append(kind, fields, once=once, sync=sync, unless=unless)


@contextlib.contextmanager
def opened(folder: str) -> Iterator[Appender]:
    """To append from outside. Never in the process that holds the liveness lock: closing the
    descriptor would drop it."""
    fd = os.open(f"{folder}/{protocol.JOURNAL}", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        yield Appender(fd)
    finally:
        os.close(fd)


def _complete_creation(folder: str, spec: Mapping[str, Any]) -> bool:
    """Whoever made the journal may have died before the spec was in it."""
    if read(folder).spec is not None:
        return False
    return append(folder, "spec", spec, once=True)


def _read_from(fd: int, offset: int) -> bytes:
    data = os.pread(fd, _READ_SIZE, offset)
    if len(data) < _READ_SIZE:
        return data
    chunks = [data]
    while chunk := os.pread(fd, _READ_SIZE, offset + sum(map(len, chunks))):
        chunks.append(chunk)
    return b"".join(chunks)


def _write_all(fd: int, data: bytes, size_before: int) -> None:
    """All or nothing: a disk that fills up in the middle leaves no half record."""
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError:
        if written:
            os.ftruncate(fd, size_before)
        raise
