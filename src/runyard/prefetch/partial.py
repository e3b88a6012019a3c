"""A file that is being fetched: its bytes, and beside them what they are the beginning of.

Bytes reach the file as they arrive, so the process may be killed at any instant and the length
says where to go on. After a loss of power only what was synced is believed.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass, replace

from runyard.prefetch import cache as caches
from runyard.prefetch import digests
from runyard.prefetch.failures import of_storage

SYNC_EVERY = 16 << 20  # small: a process that waits for the disk cannot be ended
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Source:
    """Of which version of what a partial is the beginning."""

    uri: str = ""  # masked; for people who look into the cache
    size: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    version: str | None = None

    @property
    def validator(self) -> str | None:
        """What If-Range may carry; a weak tag may not be used there."""
        if self.etag and not self.etag.startswith("W/"):
            return self.etag
        return self.last_modified


class Partial:
    """Belongs to whoever holds the entry's lock."""

    def __init__(
        self, cache: caches.Cache, key: str, expected: digests.Digest | None, size: int | None
    ) -> None:
        self.path, self._sidecar = cache.partial_path(key), cache.sidecar_path(key)
        self._expected, self._size = expected, size
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        found = caches.read_json(self._sidecar) or {}
        known = {name: found.get(name) for name in Source.__dataclass_fields__}
        self.source = Source(**known) if found.get("uri") else Source()  # type: ignore[arg-type]
        self.length = os.fstat(self._fd).st_size
        self._synced = int(found.get("synced") or 0)
        if not self.source.uri:
            self._cut(0)
        elif found.get("boot") != _boot_id():
            self._cut(self._synced)
        self.resumed = self.length > 0  # by a process before us, so that a wrong hash may be its
        self.hashing: digests.Hashing | None = None

    def close(self) -> None:
        os.close(self._fd)

    def begin(self, source: Source) -> None:
        """Start over with this version."""
        self._cut(0)
        self.source, self.resumed, self.hashing = source, False, None
        self._write_sidecar()

    def learn(self, source: Source) -> None:
        """More about the version that is here already."""
        if source != self.source:
            self.source = replace(source, uri=self.source.uri or source.uri)
            self._write_sidecar()

    def hash_what_is_here(self) -> None:
        if self.hashing is None:
            self.hashing = digests.Hashing(self._expected, self._size)
            self.hashing.feed_file(self._fd, self.length)

    def append(self, data: bytes) -> None:
        self.hash_what_is_here()
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._fd, view, self.length)
                self.hashing_now.feed(view[:written])
                self.length += written
                view = view[written:]
            if self.length - self._synced >= SYNC_EVERY:
                self.sync()
        except OSError as error:
            raise of_storage(error) from error

    def sync(self) -> None:
        os.fdatasync(self._fd)
        self._synced = self.length
        self._write_sidecar()

    def finished(self) -> digests.Hashing:
        """Everything has arrived: safe on disk, and hashed."""
        self.hash_what_is_here()
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise of_storage(error) from error
        return self.hashing_now

    def forget(self) -> None:
        """Remove the sidecar, and the partial if it did not become a blob."""
        for path in (self.path, self._sidecar):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    @property
    def hashing_now(self) -> digests.Hashing:
        assert self.hashing is not None
        return self.hashing

    def _cut(self, length: int) -> None:
        length = min(length, self.length)
        os.ftruncate(self._fd, length)
        self.length = self._synced = length

    def _write_sidecar(self) -> None:
        fields = {**asdict(self.source), "synced": self._synced, "boot": _boot_id()}
        try:
            caches.write_json(self._sidecar, fields)
        except OSError as error:
            raise of_storage(error) from error


def _boot_id() -> str:
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""
