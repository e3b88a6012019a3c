"""From an item of the plan to what it holds: one function per kind of address."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace

from runyard.prefetch import addresses, cache, digests, hub_source, object_source
from runyard.prefetch.failures import Failure, of_storage
from runyard.prefetch.http_requests import basic, nobody
from runyard.prefetch.listed import Asking, Listed
from runyard.prefetch.plan import Item
from runyard.prefetch.remote_file import RemoteFile


def listed(
    item: Item, address: addresses.Address, asking: Asking, kept: cache.Cache
) -> tuple[Listed, bool]:
    """What the item holds, and whether its source confirmed that just now."""
    confirmed = True
    if isinstance(address, addresses.HubAddress):
        found, confirmed = hub_source.listed(item.uri, address, asking, kept)
    elif isinstance(address, addresses.ObjectAddress):
        found = object_source.listed(item.uri, address, asking)
    elif isinstance(address, addresses.FileAddress):
        found = _of_this_machine(item, address)
    else:
        found = Listed((_of_the_web(item, address),))
    if item.hash and found.files and not found.folder:
        expected = digests.Digest("sha256", item.hash.removeprefix("sha256:"))
        found = replace(found, files=(replace(found.files[0], digest=expected, version=None),))
    paths = [file.path for file in found.files]
    if len(set(paths)) != len(paths):
        raise Failure("bad_answer", None, reason="double_path")
    return found, confirmed


def _of_the_web(item: Item, address: addresses.WebAddress) -> RemoteFile:
    authorize = nobody
    if address.user is not None:
        header = basic(address.user, address.password or "")

        def authorize(method: str, url: str) -> dict[str, str]:  # noqa: ARG001
            return {"Authorization": header}

    return RemoteFile(
        uri=addresses.masked(item.uri),
        url=address.url,
        authorize=authorize,
        path="",
        source=cache.source_key(address.url, address.user or "", address.password or ""),
    )


def _of_this_machine(item: Item, address: addresses.FileAddress) -> Listed:
    path = address.path
    try:
        kind = os.stat(path).st_mode
        if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(kind) else 0)):
            raise Failure("auth", None, path=path)
        if not stat.S_ISDIR(kind) and not stat.S_ISREG(kind):
            raise Failure("bad_uri", None, reason="not_a_file", path=path)
        if item.hash:
            _check_local(item.hash.removeprefix("sha256:"), path, stat.S_ISDIR(kind))
    except (FileNotFoundError, NotADirectoryError):
        raise Failure("not_found", None, path=path) from None
    except PermissionError:
        raise Failure("auth", None, path=path) from None
    except OSError as error:
        raise of_storage(error) from error
    return Listed(folder=stat.S_ISDIR(kind), local=path)


def _check_local(expected: str, path: str, folder: bool) -> None:
    if folder:
        files = ((name, digests.of_file(os.path.join(path, name))) for name in _below(path))
        actual = digests.of_folder(files)
    else:
        actual = digests.of_file(path)
    if actual != expected:
        raise Failure("hash_mismatch", None, expected=expected, actual=actual)


def _below(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for place, _, names in os.walk(folder, onerror=refuse):
        for name in names:
            yield os.path.relpath(os.path.join(place, name), folder)
