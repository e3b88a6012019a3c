"""When a waiting job may start: honest bounds from what is known of the jobs before it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

# A typical duration is a middle: most jobs end between this part and this multiple of it.
EARLY, LATE = 0.5, 2.0
MOST_AHEAD = 2000

Running = tuple[float | None, float | None]  # (started_at, time-out)


def start(
    *,
    now: float,
    ahead: int,
    running: Sequence[Running],
    slots: int,
    ahead_s: Sequence[float | None] = (),
    typical_s: float | None = None,
) -> tuple[float | None, float | None]:
    """(earliest, latest) start of a job with `ahead` others before it; None if unknown.

    `running` has start and time-out of each attempt, `ahead_s` the time-outs of the jobs ahead as
    far as the caller has them, `typical_s` how long such jobs usually take. A time-out bounds an
    end from above, a typical duration from both sides.
    """
    if slots <= 0:
        return None, None
    limits = [limit for _, limit in running] + list(ahead_s[:ahead])
    busy = ahead + len(running) >= slots
    if busy and typical_s is None and all(limit is None for limit in limits):
        return None, None
    counted = min(ahead, MOST_AHEAD)
    early = _walk(now, slots, running, _padded(ahead_s, counted), _part(typical_s, EARLY, 0.0))
    late = _walk(now, slots, running, _padded(ahead_s, counted), _part(typical_s, LATE, math.inf))
    return early, late if math.isfinite(late) and counted == ahead else None


def _walk(
    now: float,
    slots: int,
    running: Iterable[Running],
    ahead_s: Iterable[float | None],
    usual_s: float,
) -> float:
    """When the last in line starts, if each job takes `usual_s`, or its time-out if shorter."""
    ends = [
        max(now, (now if started is None else started) + _least(usual_s, limit))
        for started, limit in running
    ]
    heapq.heapify(ends)
    at = now
    for limit in ahead_s:
        at = _next_free(ends, slots, at)
        heapq.heappush(ends, at + _least(usual_s, limit))
    return _next_free(ends, slots, at)


def _next_free(ends: list[float], slots: int, at: float) -> float:
    while len(ends) >= slots:
        at = max(at, heapq.heappop(ends))
    return at


def _padded(known: Sequence[float | None], length: int) -> list[float | None]:
    return [*known[:length], *([None] * (length - len(known)))]


def _part(typical_s: float | None, factor: float, unknown: float) -> float:
    return unknown if typical_s is None else typical_s * factor


def _least(usual_s: float, limit: float | None) -> float:
    return usual_s if limit is None else min(usual_s, limit)
