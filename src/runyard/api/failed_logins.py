"""Counts wrong keys per address over a moving window."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable


class FailedLogins:
    """Used from the event loop only. A good key is never counted and never refused."""

    def __init__(
        self,
        limit: int = 20,
        window_s: float = 60.0,
        addresses: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._window_s = window_s
        self._addresses = addresses
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def retry_after(self, address: str) -> int:
        """Seconds until this address may try wrong keys again; 0 when it may now."""
        recent = self._recent(_network(address))
        if len(recent) < self._limit:
            return 0
        return max(1, math.ceil(recent[0] + self._window_s - self._clock()))

    def failed(self, address: str) -> None:
        network = _network(address)
        recent = self._recent(network)
        if len(recent) < self._limit:
            recent.append(self._clock())
        self._failures[network] = recent
        self._failures.move_to_end(network)
        while len(self._failures) > self._addresses:
            self._failures.popitem(last=False)

    def _recent(self, network: str) -> deque[float]:
        recent = self._failures.get(network, deque())
        oldest = self._clock() - self._window_s
        while recent and recent[0] <= oldest:
            recent.popleft()
        if not recent:
            self._failures.pop(network, None)
        return recent


def _network(address: str) -> str:
    """One person easily has a whole /64 of IPv6 addresses, so those count as one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
