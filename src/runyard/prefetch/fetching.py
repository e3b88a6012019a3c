"""Fetching of many files by a few threads, each entry of the cache by one of them only."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from runyard.prefetch.backoff import Patience
from runyard.prefetch.cache import Blob, Cache, read_json
from runyard.prefetch.download import Download
from runyard.prefetch.failures import Failure, of_storage
from runyard.prefetch.http_requests import Connections
from runyard.prefetch.links import Links
from runyard.prefetch.partial import Partial, Source
from runyard.prefetch.progress import Tracker
from runyard.prefetch.remote_file import RemoteFile
from runyard.prefetch.room import Room

LOOK_AGAIN_S = 0.1  # at an entry that somebody else fetches


@dataclass(frozen=True)
class Wanted:
    """A file, the item it belongs to, and its number in the progress."""

    file: RemoteFile
    item: str
    number: int


@dataclass(frozen=True)
class Arrived:
    """Where a wanted file is now; `fetched` counts the bytes that came over the network."""

    wanted: Wanted
    blob: Blob
    fetched: bool
    confirmed: bool = True
    resumed_at: int = 0  # where the download of it was taken up again


@dataclass(frozen=True)
class Surroundings:
    """What every thread works with."""

    cache: Cache
    room: Room
    links: Links
    tracker: Tracker
    patience: Callable[[str], Patience]
    timeout_s: float


def check_room(wanted: list[Wanted], around: Surroundings) -> None:
    """As far as sizes are known before anything is asked for."""
    entries = {}
    for each in wanted:
        if each.file.size and _sha256_at_hand(each.file, around.cache) is None:
            entries[each.file.key] = each.file.size
    around.room.check(entries)


def fetch_all(wanted: list[Wanted], around: Surroundings, parallel: int) -> list[Arrived]:
    """Everything, or the first Failure at once; the threads left behind end with the process."""
    todo: queue.Queue[Wanted] = queue.Queue()
    news: queue.Queue[Arrived | BaseException] = queue.Queue()
    arrived: list[Arrived] = []
    for each in wanted:
        # First of all, so that making room for the others cannot remove what is here.
        if found := _at_hand(each, around):
            around.tracker.finish(each.number, found.blob.size)
            arrived.append(found)
        else:
            todo.put(each)
    for _ in range(min(parallel, todo.qsize())):
        threading.Thread(target=_work, args=(todo, news, around), daemon=True).start()
    while len(arrived) < len(wanted):
        one = news.get()
        if isinstance(one, BaseException):
            raise one
        arrived.append(one)
    return arrived


def _work(
    todo: queue.Queue[Wanted],
    news: queue.Queue[Arrived | BaseException],
    around: Surroundings,
) -> None:
    connections = Connections(around.timeout_s)
    while True:
        try:
            wanted = todo.get_nowait()
        except queue.Empty:
            return
        try:
            arrived = _fetch(wanted, around, connections)
        except Failure as failure:
            news.put(failure.about(wanted.file.uri))
            return
        except OSError as error:
            news.put(of_storage(error).about(wanted.file.uri))
            return
        except BaseException as error:
            news.put(error)
            return
        if arrived is None:
            todo.put(wanted)
            time.sleep(LOOK_AGAIN_S)
        else:
            around.tracker.finish(wanted.number, arrived.blob.size)
            news.put(arrived)


def _fetch(wanted: Wanted, around: Surroundings, connections: Connections) -> Arrived | None:
    """None while somebody else fetches it."""
    if found := _at_hand(wanted, around):
        return found
    lock = around.cache.lock(wanted.file.key)
    if lock is None:
        _show_the_other(wanted, around)
        return None
    try:
        return _at_hand(wanted, around) or _bring(wanted, around, connections)
    finally:
        lock.release()


def _at_hand(wanted: Wanted, around: Surroundings) -> Arrived | None:
    """In the cache already, and sure to be what is wanted without asking anybody."""
    sha256 = _sha256_at_hand(wanted.file, around.cache)
    return _linked(wanted, around, sha256) if sha256 else None


def _sha256_at_hand(file: RemoteFile, cache: Cache) -> str | None:
    if file.digest is not None and file.digest.kind == "sha256":
        sha256: str = file.digest.value
    else:
        record = cache.record(file.key) or {}
        same = file.version is not None and record.get("version") == file.version
        named = file.digest is not None and file.digest.kind == "git"
        sha256 = record.get("sha256", "") if same or named else ""
    return sha256 if sha256 and os.path.exists(cache.blob_path(sha256)) else None


def _linked(wanted: Wanted, around: Surroundings, sha256: str) -> Arrived | None:
    with around.cache.linking():
        blob = around.cache.find(sha256)
        if blob is None:
            return None
        around.links.add(wanted.item, wanted.file.path, blob)
    return Arrived(wanted, blob, fetched=False)


def _bring(wanted: Wanted, around: Surroundings, connections: Connections) -> Arrived:
    file, cache = wanted.file, around.cache
    partial = Partial(cache, file.key, file.digest, file.size)
    try:
        while True:
            known = _known(file, cache)
            download = Download(
                file, partial, connections, around.room, around.tracker, wanted.number
            )
            confirmed = True
            try:
                complete = download.complete(known, around.patience(file.uri))
            except Failure as failure:
                # Where bytes of another version have arrived, the kept one is known to be old.
                if failure.code != "network" or known is None or partial.length:
                    raise
                complete = confirmed = False
            if not complete and (kept := _kept(wanted, around, confirmed)):
                partial.forget()
                return kept
            if complete and (arrived := _finished(wanted, around, partial)):
                return replace(arrived, resumed_at=download.resumed_at)
    finally:
        partial.close()


def _known(file: RemoteFile, cache: Cache) -> Source | None:
    """The version that is in the cache, if there is one that a server can be asked about."""
    record = cache.record(file.key) or {}
    sha256 = record.get("sha256")
    if file.digest is not None or file.version is not None or not sha256:
        return None
    if not os.path.exists(cache.blob_path(sha256)):
        return None
    return Source(file.uri, None, record.get("etag"), record.get("last_modified"))


def _kept(wanted: Wanted, around: Surroundings, confirmed: bool) -> Arrived | None:
    record = around.cache.record(wanted.file.key) or {}
    found = _linked(wanted, around, record.get("sha256", ""))
    return Arrived(wanted, found.blob, False, confirmed) if found else None


def _finished(wanted: Wanted, around: Surroundings, partial: Partial) -> Arrived | None:
    """Make the partial a blob; None where it must be fetched once more from the start."""
    file, source = wanted.file, partial.source
    around.tracker.show(wanted.number, "checking", partial.length, partial.length)
    hashing = partial.finished()
    if not hashing.as_expected():
        if partial.resumed:
            partial.begin(Source(uri=file.uri, version=file.version))
            return None
        partial.forget()
        expected = file.digest.value if file.digest else ""
        raise Failure("hash_mismatch", None, expected=expected, actual=hashing.compared)
    record = {"sha256": hashing.sha256, "etag": source.etag, "uri": file.uri}
    record |= {"last_modified": source.last_modified, "version": file.version}
    with around.cache.linking():
        if file.key != f"sha256-{hashing.sha256}":
            around.cache.write_record(file.key, record)
        blob = around.cache.keep(partial.path, hashing.sha256)
        around.links.add(wanted.item, file.path, blob)
    partial.forget()
    return Arrived(wanted, blob, fetched=True)


def _show_the_other(wanted: Wanted, around: Surroundings) -> None:
    """Somebody else's progress is ours as well."""
    cache, key = around.cache, wanted.file.key
    try:
        here = os.stat(cache.partial_path(key)).st_size
    except FileNotFoundError:
        return
    sidecar = read_json(cache.sidecar_path(key)) or {}
    size = sidecar.get("size") if wanted.file.size is None else wanted.file.size
    around.tracker.show(wanted.number, "waiting", here, size)
