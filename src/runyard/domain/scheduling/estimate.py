"""When a waiting job may start: honest bounds from what is known of the jobs before it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

# A typical duration is a middle: most jobs end between this part and this multiple of it.
EARLY, LATE = 0.5, 2.0
MOST_AHEAD = 2000

Running = tuple[float | None, float | None]  # (started_at, time-out)
Forecast = tuple[float, float]  # (earliest, latest) end, as a training's own progress tells it


def start(
    *,
    now: float,
    ahead: int,
    running: Sequence[Running],
    slots: int,
    ahead_s: Sequence[float | None] = (),
    typical_s: float | None = None,
    forecasts: Sequence[Forecast | None] = (),
) -> tuple[float | None, float | None]:
    """(earliest, latest) start of a job with `ahead` others before it; None if unknown.

    `running` has start and time-out of each attempt, `ahead_s` the time-outs of the jobs ahead as
    far as the caller has them, `typical_s` how long such jobs usually take. A time-out bounds an
    end from above, a typical duration from both sides. `forecasts`, in the order of `running`, say
    when those will end by their own progress: surer than either.
    """
    if slots <= 0:
        return None, None
    limits = [limit for _, limit in running] + list(ahead_s[:ahead])
    busy = ahead + len(running) >= slots
    told = [*forecasts, *([None] * (len(running) - len(forecasts)))]
    if busy and typical_s is None and not any(told) and all(limit is None for limit in limits):
        return None, None
    counted = min(ahead, MOST_AHEAD)
    waits, soon, long = _padded(ahead_s, counted), *_parts(typical_s)
    first = [one and one[0] for one in told]
    last = [one and one[1] for one in told]
    early = _walk(now, slots, _ends(now, running, first, soon), waits, soon)
    late = _walk(now, slots, _ends(now, running, last, long), waits, long)
    return early, late if math.isfinite(late) and counted == ahead else None


def _walk(
    now: float,
    slots: int,
    ends: list[float],
    ahead_s: Iterable[float | None],
    usual_s: float,
) -> float:
    """When the last in line starts, if each job takes `usual_s`, or its time-out if shorter."""
    heapq.heapify(ends)
    at = now
    for limit in ahead_s:
        at = _next_free(ends, slots, at)
        heapq.heappush(ends, at + _least(usual_s, limit))
    return _next_free(ends, slots, at)


def _ends(
    now: float, running: Iterable[Running], told: Iterable[float | None], usual_s: float
) -> list[float]:
    """When each that runs ends: as it says itself, else after `usual_s` or its time-out."""
    return [
        max(now, (now if started is None else started) + _least(usual_s, limit))
        if end is None
        else max(now, end if limit is None or started is None else min(end, started + limit))
        for (started, limit), end in zip(running, told, strict=True)
    ]


def _next_free(ends: list[float], slots: int, at: float) -> float:
    while len(ends) >= slots:
        at = max(at, heapq.heappop(ends))
    return at


def _padded(known: Sequence[float | None], length: int) -> list[float | None]:
    return [*known[:length], *([None] * (length - len(known)))]


def _parts(typical_s: float | None) -> tuple[float, float]:
    """How long a job takes at least and at most."""
    return (0.0, math.inf) if typical_s is None else (typical_s * EARLY, typical_s * LATE)


def _least(usual_s: float, limit: float | None) -> float:
    return usual_s if limit is None else min(usual_s, limit)
