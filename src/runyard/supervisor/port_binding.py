"""Whether a port that was granted can be listened at. Standard library only: this module also
travels to nodes of clusters by value."""

from __future__ import annotations

import errno
import socket

_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


def taken(ports: list[int]) -> list[int]:
    """Those of them that somebody uses, at whatever address: a listener, or a connection that the
    kernel gave this port. What lingers of closed connections is no obstacle to servers."""
    return [port for port in ports if not all(_can_bind(one, port) for one in _FAMILIES)]


def _can_bind(family: socket.AddressFamily, port: int) -> bool:
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(("", port))
    except OSError as error:
        return error.errno not in _TAKEN  # else the family is missing
    return True
