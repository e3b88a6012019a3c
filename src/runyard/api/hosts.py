"""By which names this server may be called and from which pages.

Against DNS rebinding and cross-site requests.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from runyard.domain import errors

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Hosts:
    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_bare(name) for name in names) | {"localhost"}

    def check(self, method: str, headers: list[tuple[bytes, bytes]]) -> None:
        """WrongHost or WrongOrigin; quiet when both fit."""
        host = origin = site = shown = b""
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"x-forwarded-host":
                shown = value
        self._check_host(host.decode("latin-1"))
        if method not in _SAFE and (origin or site == b"cross-site"):
            self._check_origin(
                origin.decode("latin-1"), host.decode("latin-1"), shown.decode("latin-1")
            )

    def _check_host(self, host: str) -> None:
        name = _bare(host)
        # An attacker's page reaches us by a name that it controls, never by an address.
        if not (name in self._names or name.endswith(".localhost") or _is_address(name)):
            raise errors.WrongHost(host=host)

    def _check_origin(self, origin: str, host: str, shown: str) -> None:
        """`shown` is the name by which a proxy was called; a page cannot make one up, because a
        browser asks us before it sends such a header to another site."""
        hosts = {host.lower()}
        if _bare(shown) in self._names:
            hosts.add(shown.strip().lower())
        if not origin or _place(origin) not in hosts:
            raise errors.WrongOrigin(origin=origin or "another site")


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _bare(host: str) -> str:
    """Without port and brackets, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
