"""Which ports of a machine's pool a job gets: the next free ones behind those granted last.

What was just given back comes last: connections of its last user may linger there for a minute,
and so may a process that nobody has seen the end of.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from itertools import chain, islice


def choose_ports(
    first: int, count: int, wanted: int, taken: Container[int], *, keep: int = 0, begin: int = 0
) -> tuple[int, ...] | None:
    """`wanted` ports of the pool [first, first + count) that are not taken, the next from `begin`
    on, round to the start of the pool. None when there are not so many beside the `keep` free ones
    that are left to somebody else."""
    if wanted <= 0:
        return ()
    free = (port for port in _from(begin, first, count) if port not in taken)
    found = tuple(islice(free, wanted + keep))
    return found[:wanted] if len(found) == wanted + keep else None


def begin_after(ports: Collection[int], begin: int) -> int:
    """Where the next choice begins once these were granted by choices that began at `begin`."""
    wrapped = [port for port in ports if port < begin]
    return max(wrapped or ports, default=begin - 1) + 1


def _from(begin: int, first: int, count: int) -> Iterable[int]:
    end = first + count
    middle = begin if first <= begin < end else first
    return chain(range(middle, end), range(first, middle))
