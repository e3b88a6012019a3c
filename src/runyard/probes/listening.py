"""Ports that some process of this machine listens on, as the kernel lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS = "0A"


def listening_ports(tables: Iterable[Path] = TABLES) -> frozenset[int]:
    """Empty where the kernel tells nothing. Whoever listens at one address only is counted too:
    a job may want all of them."""
    return frozenset(port for table in tables for port in _of(table))


def _of(table: Path) -> Iterator[int]:
    try:
        with table.open(encoding="ascii") as lines:
            next(lines, None)  # the names of the columns
            for line in lines:
                words = line.split(None, 4)
                if words[3] != _LISTENS:
                    return  # the connections, of which there may be very many, come last
                yield int(words[1].rpartition(":")[2], 16)
    except (OSError, ValueError, IndexError):
        return
