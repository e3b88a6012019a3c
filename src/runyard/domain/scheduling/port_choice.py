"""Which ports of a machine's pool a job gets: the lowest free ones."""

from __future__ import annotations

from collections.abc import Container


def choose_ports(
    first: int, count: int, wanted: int, taken: Container[int], *, keep: int = 0
) -> tuple[int, ...] | None:
    """`wanted` ports of the pool [first, first + count) that are not taken, leaving the lowest
    `keep` free ones to somebody else; None when there are not so many."""
    if wanted <= 0:
        return ()
    chosen: list[int] = []
    for port in range(first, first + count):
        if port in taken:
            continue
        if keep > 0:
            keep -= 1
            continue
        chosen.append(port)
        if len(chosen) == wanted:
            return tuple(chosen)
    return None
