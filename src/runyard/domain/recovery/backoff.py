"""How long to wait before the next attempt."""

from __future__ import annotations

from collections.abc import Sequence

DELAYS = (60.0, 300.0, 900.0)
JITTER = 0.1  # a delay grows by up to this part, so that jobs that failed together spread out


def delays_of(job: Sequence[float] | None, server: Sequence[float]) -> Sequence[float]:
    """Those of the job, if it says any."""
    return job or server


def delay(delays: Sequence[float], nth: int, jitter: float = 0.0) -> float:
    """Before retry `nth` (from 0); the last of `delays` repeats; `jitter` is a random number in
    [0, 1)."""
    if not delays:
        return 0.0
    return spread(delays[min(max(nth, 0), len(delays) - 1)], jitter)


def spread(delay_s: float, jitter: float) -> float:
    return delay_s * (1 + JITTER * jitter)
