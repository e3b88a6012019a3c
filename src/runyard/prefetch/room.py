"""Room for what is about to be fetched: the quota, free disk, and removal of what nobody uses."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runyard.prefetch import cache as caches
from runyard.prefetch.failures import Failure

OLD_PARTIAL_S = 14 * 86400.0
COUNT_EVERY_S = 5.0
_PARTIAL = ".partial"


@dataclass(frozen=True)
class _Idle:
    """Something that may go: a blob that no job has linked, or a partial nobody fetches."""

    used_at: float
    size: int
    remove: Callable[[], None]


class Room:
    """Counts what the cache holds each time anew, so processes need not agree on a number."""

    def __init__(self, cache: caches.Cache, quota: int | None) -> None:
        self._cache, self._quota = cache, quota
        self._own: set[str] = set()
        self._counted_at, self._slack = float("-inf"), 0

    def reserve(self, key: str, size: int, begin: Callable[[], None]) -> None:
        """Make room for an entry of `size` bytes in all, then `begin` it before anybody else
        counts. What has arrived of it already is part of `size`."""
        with self._cache.removing():
            missing = max(0, size - _size(self._cache.partial_path(key)))
            if self._surely_fits(size, missing):
                begin()
                return
            held, idle = self._count({key})
            self._refuse_excess(held + size, size, missing, idle)
            excess = 0 if self._quota is None else held + size - self._quota
            _remove(idle, max(excess, missing - _free(self._cache.folder)))
            self._counted_at, self._slack = time.monotonic(), max(0, -excess)
            begin()

    def check(self, entries: dict[str, int]) -> None:
        """Refuse at once what could not be finished, with everything removed that may go: the
        sizes of all entries that are to be fetched, by key."""
        self._own = set(entries)
        if not entries:
            return
        with self._cache.removing():
            needed = sum(entries.values())
            missing = sum(
                max(0, size - _size(self._cache.partial_path(key)))
                for key, size in entries.items()
            )
            held, idle = self._count(self._own)
            self._refuse_excess(held + needed, needed, missing, idle)

    def _surely_fits(self, size: int, missing: int) -> bool:
        """By the last count, if it is young: counting for each of ten thousand small files would
        take longer than to fetch them."""
        if missing > _free(self._cache.folder):
            return False
        if self._quota is None:
            return True
        self._slack -= size
        return self._slack >= 0 and time.monotonic() - self._counted_at < COUNT_EVERY_S

    def _refuse_excess(self, held: int, needed: int, missing: int, idle: list[_Idle]) -> None:
        may_go = sum(each.size for each in idle)
        if self._quota is not None and held - may_go > self._quota:
            raise Failure("quota", None, needed_bytes=needed, quota_bytes=self._quota)
        free = _free(self._cache.folder)
        if missing > free + may_go:
            raise Failure("disk_full", None, needed_bytes=missing, free_bytes=free)

    def forget_old_partials(self, now: float) -> None:
        with self._cache.removing():
            for key, used_at, _ in self._partials():
                if now - used_at > OLD_PARTIAL_S and (lock := self._cache.lock(key)):
                    self._remove_partial(key, lock)

    def _count(self, without: set[str]) -> tuple[int, list[_Idle]]:
        """Bytes the cache holds or has promised, and what of them may go. Partials of this plan
        may not: it is about to go on with them."""
        held, idle = 0, []
        linked = self._linked_from_elsewhere()
        for sha256, status in self._blobs():
            held += status.st_size
            if status.st_nlink == 1 and sha256 not in linked:
                idle.append(self._idle_blob(sha256, status))
        for key, used_at, size in self._partials():
            if key in without:
                continue
            lock = None if key in self._own else self._cache.lock(key)
            if lock is None:
                sidecar = caches.read_json(self._cache.sidecar_path(key)) or {}
                held += max(size, sidecar.get("size") or 0)
            else:
                lock.release()
                held += size
                idle.append(_Idle(used_at, size, functools.partial(self._give_up, key)))
        return held, sorted(idle, key=lambda each: each.used_at)

    def _idle_blob(self, sha256: str, status: os.stat_result) -> _Idle:
        def remove() -> None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._cache.blob_path(sha256))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._cache.path("records", f"{caches.blob_key(sha256)}.json"))

        return _Idle(status.st_atime, status.st_size, remove)

    def _give_up(self, key: str) -> None:
        lock = self._cache.lock(key)
        if lock is not None:
            self._remove_partial(key, lock)

    def _remove_partial(self, key: str, lock: caches.EntryLock) -> None:
        for path in (self._cache.partial_path(key), self._cache.sidecar_path(key)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        lock.release()

    def _blobs(self) -> Iterator[tuple[str, os.stat_result]]:
        for folder in os.scandir(self._cache.path("blobs")):
            for entry in os.scandir(folder.path):
                with contextlib.suppress(FileNotFoundError):
                    yield entry.name, entry.stat(follow_symlinks=False)

    def _partials(self) -> Iterator[tuple[str, float, int]]:
        for entry in os.scandir(self._cache.path("partials")):
            if entry.name.endswith(_PARTIAL):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield entry.name.removesuffix(_PARTIAL), status.st_mtime, status.st_size

    def _linked_from_elsewhere(self) -> set[str]:
        """Hard links count themselves; symbolic ones are written down, and hold while their
        directory is there."""
        linked: set[str] = set()
        for entry in os.scandir(self._cache.path("uses")):
            with contextlib.suppress(FileNotFoundError), open(entry.path) as file:
                folder, *blobs = file.read().split("\n")
                if os.path.isdir(json.loads(folder)):
                    linked.update(blobs)
                else:
                    os.unlink(entry.path)
        return linked


def _remove(idle: list[_Idle], wanted: int) -> None:
    for each in idle:
        if wanted <= 0:
            return
        each.remove()
        wanted -= each.size


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _free(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
