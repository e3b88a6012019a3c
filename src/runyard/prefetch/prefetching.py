"""The whole of one plan: name, list, fetch, check, publish."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from runyard.prefetch import addresses, digests, fetching, sources
from runyard.prefetch.backoff import Patience
from runyard.prefetch.cache import Cache
from runyard.prefetch.failures import Failure, Trouble, of_storage
from runyard.prefetch.http_requests import Connections
from runyard.prefetch.links import Links
from runyard.prefetch.listed import Asking, Listed
from runyard.prefetch.plan import Item, Outcome, Plan
from runyard.prefetch.progress import EVERY_S, Tracker, print_line
from runyard.prefetch.room import Room


@dataclass(frozen=True)
class _Named:
    """An item of the plan with the name it will have."""

    item: Item
    name: str
    address: addresses.Address


def prefetch(plan: Plan, tracker: Tracker) -> Outcome:
    """Bring everything; the outcome says what was brought or the first thing that failed."""
    try:
        return _prefetch(plan, tracker)
    except Failure as failure:
        return failure.outcome()
    except OSError as error:
        return of_storage(error).outcome()


def _prefetch(plan: Plan, tracker: Tracker) -> Outcome:
    named = _names(plan.items)
    cache = Cache(plan.cache_dir)
    room = Room(cache, plan.quota_bytes)
    room.forget_old_partials(time.time())
    links = Links(cache, plan.link_dir)
    try:
        listed = [(each, *_listed(each, plan, cache)) for each in named]
        wanted = [
            fetching.Wanted(file, each.name, tracker.expect(_shown(each, file.path), file.size))
            for each, found, _ in listed
            for file in found.files
        ]
        around = fetching.Surroundings(
            cache, room, links, tracker, lambda uri: _patience(plan, uri), plan.timeout_s
        )
        fetching.check_room(wanted, around)
        arrived = fetching.fetch_all(wanted, around, plan.parallel)
        items = [_published(*one, arrived, links) for one in listed]
    finally:
        links.close()
    return {"code": "present", "uri": None, "params": {}, "items": items}


def show_regularly(tracker: Tracker) -> None:
    """Write the progress twice a second until the process ends."""

    def show() -> None:
        while True:
            tracker.write()
            time.sleep(EVERY_S)

    threading.Thread(target=show, daemon=True).start()


def _names(items: tuple[Item, ...]) -> list[_Named]:
    """All of them read before any is fetched: a bad address ends it at once."""
    named: dict[str, _Named] = {}
    for item in items:
        address, name = addresses.parse(item.uri if not item.name else _with_any_name(item.uri))
        name = addresses.check_name(item.name, item.uri) if item.name else name
        if name in named:
            raise addresses.bad(item.uri, "name_taken", name=name)
        named[name] = _Named(item, name, address)
    return list(named.values())


def _with_any_name(uri: str) -> str:
    """Where the plan names the item, the address need not end in something usable."""
    return uri.partition("#")[0] + "#named"


def _listed(named: _Named, plan: Plan, cache: Cache) -> tuple[Listed, bool]:
    uri = addresses.masked(named.item.uri)
    connections = Connections(plan.timeout_s)
    try:
        asking = Asking(connections, lambda: _patience(plan, uri))
        return sources.listed(named.item, named.address, asking, cache)
    except Failure as failure:
        raise failure.about(uri) from failure.__cause__
    finally:
        connections.close()


def _patience(plan: Plan, uri: str) -> Patience:
    def note(trouble: Trouble, delay: float) -> None:
        params = {**trouble.params, "reason": trouble.reason, "wait_s": round(delay, 2)}
        print_line({"note": "trying_again", "uri": uri, "params": params})

    return Patience(plan.tries, plan.backoff_s, note)


def _published(
    named: _Named,
    found: Listed,
    confirmed: bool,
    arrived: list[fetching.Arrived],
    links: Links,
) -> dict[str, Any]:
    own = [one for one in arrived if one.wanted.item == named.name]
    hashes = {one.wanted.file.path: one.blob.sha256 for one in own}
    single = None if found.folder or not own else own[0].blob.sha256
    if found.local is not None:
        links.add_local(named.name, found.local)
    elif named.item.hash and found.folder:
        _check_folder(named, digests.of_folder(hashes.items()))
    return {
        "uri": addresses.masked(named.item.uri),
        "name": named.name,
        "path": links.publish(named.name),
        "files": len(own),
        "bytes": sum(one.blob.size for one in own),
        "fetched_files": sum(one.fetched for one in own),
        "resumed_bytes": sum(one.resumed_at for one in own),
        "sha256": single,
        "revision": found.revision,
        # False where the source was out of reach and what the cache has was used.
        "confirmed": confirmed and all(one.confirmed for one in own),
    }


def _check_folder(named: _Named, actual: str) -> None:
    expected = (named.item.hash or "").removeprefix("sha256:")
    if actual != expected:
        uri = addresses.masked(named.item.uri)
        raise Failure("hash_mismatch", uri, expected=expected, actual=actual)


def _shown(named: _Named, path: str) -> str:
    return f"{named.name}/{path}" if path else named.name
