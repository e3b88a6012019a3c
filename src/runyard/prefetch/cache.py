"""The shared cache: finished content by its sha256, partial files by entry, and their locks.

    blobs/ab/abcd...          finished, read-only, named by sha256
    partials/KEY.partial      what has arrived; KEY.json beside it says of what
    records/KEY.json          which blob an entry became, and how to ask whether it changed
    locks/KEY                 held by whoever fetches the entry
    uses/ID                   link directories on other file systems, and the blobs they point to
    room.lock                 shared while a blob is linked, alone while blobs are removed

Every file but a partial appears whole: written aside, then renamed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runyard.prefetch import digests


@dataclass(frozen=True)
class Blob:
    sha256: str
    size: int
    path: str


class Cache:
    """Paths and records below one directory. Holds no state, so threads and processes share it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        for name in ("blobs", "partials", "records", "locks", "uses"):
            os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)

    def path(self, *parts: str) -> str:
        return os.path.join(self.folder, *parts)

    def blob_path(self, sha256: str) -> str:
        return self.path("blobs", sha256[:2], sha256)

    def partial_path(self, key: str) -> str:
        return self.path("partials", f"{key}.partial")

    def sidecar_path(self, key: str) -> str:
        return self.path("partials", f"{key}.json")

    def record(self, key: str) -> dict[str, Any] | None:
        return read_json(self.path("records", f"{key}.json"))

    def write_record(self, key: str, fields: dict[str, Any]) -> None:
        write_json(self.path("records", f"{key}.json"), {**fields, "at": time.time()})

    def find(self, sha256: str) -> Blob | None:
        """A blob that is still what it was: a job that wrote into it is noticed by its size or
        time, and then only the hash can say."""
        path = self.blob_path(sha256)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return None
        seen = self.record(blob_key(sha256)) or {}
        if (seen.get("size"), seen.get("mtime_ns")) != (status.st_size, status.st_mtime_ns):
            if digests.of_file(path) != sha256:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                return None
            self._note_blob(sha256, status)
        # Set by hand: many file systems are mounted so that reading does not change it.
        os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        return Blob(sha256, status.st_size, path)

    def keep(self, partial: str, sha256: str) -> Blob:
        """Make a finished and synced partial a blob; one with the same content is kept instead."""
        os.chmod(partial, 0o444)
        self._note_blob(sha256, os.stat(partial))
        target = self.blob_path(sha256)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        if os.path.exists(target) and (found := self.find(sha256)):
            os.unlink(partial)
            return found
        os.rename(partial, target)
        return Blob(sha256, os.stat(target).st_size, target)

    @contextlib.contextmanager
    def linking(self) -> Iterator[None]:
        """Within it no blob is removed by anybody."""
        with self._room_lock(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def removing(self) -> Iterator[None]:
        """Within it nobody links a blob or begins a partial."""
        with self._room_lock(fcntl.LOCK_EX):
            yield

    def lock(self, key: str) -> EntryLock | None:
        """The right to fetch an entry, or None while another process or thread has it."""
        path = self.path("locks", key)
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return None
            # Somebody may have removed the file between our opening and our locking it.
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(fd).st_ino == os.stat(path).st_ino:
                    return EntryLock(fd, path)
            os.close(fd)

    def _note_blob(self, sha256: str, status: os.stat_result) -> None:
        fields = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        self.write_record(blob_key(sha256), fields)

    @contextlib.contextmanager
    def _room_lock(self, how: int) -> Iterator[None]:
        fd = os.open(self.path("room.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)


class EntryLock:
    """Given back by `release`, or by the kernel when the process ends however it ends."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd, self._path = fd, path

    def release(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        os.close(self._fd)


def blob_key(sha256: str) -> str:
    return f"sha256-{sha256}"


def source_key(*identity: str) -> str:
    """For content known by where it is from; the parts may hold credentials, the key does not."""
    return "source-" + hashlib.sha256("\0".join(identity).encode()).hexdigest()


def read_json(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: str, fields: dict[str, Any]) -> None:
    aside = f"{path}.{os.getpid()}.{time.monotonic_ns()}.tmp"
    try:
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(fields, file, separators=(",", ":"))
        os.replace(aside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
