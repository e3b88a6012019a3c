"""What this server has done since it started, counted for whoever wants to know: Prometheus."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

# A program that asks for names nobody knows must not fill the memory.
MOST_LABELS = 1000
_FAST_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_ANSWER_S = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_CANCEL_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_WAIT_S = (0.1, 1.0, 10.0, 60.0, 300.0, 1800.0, 7200.0, 28800.0, 86400.0)

Labels = tuple[str, ...]


class Count:
    """How often, by labels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1.0) -> None:
        with self._lock:
            if labels in self._counts or len(self._counts) < MOST_LABELS:
                self._counts[labels] = self._counts.get(labels, 0.0) + by

    def all(self) -> dict[Labels, float]:
        with self._lock:
            return dict(self._counts)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Cumulative: (upper bound, how many were not above it), the last one without a bound."""

    counts: tuple[tuple[float, int], ...]
    total: float


class Spread:
    """How long, by labels: counts of times within bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._lock = threading.Lock()
        self._counts: dict[Labels, list[int]] = {}
        self._totals: dict[Labels, float] = {}

    def add(self, seconds: float, *labels: str) -> None:
        place = bisect_left(self._bounds, seconds)
        with self._lock:
            counts = self._counts.get(labels)
            if counts is None:
                if len(self._counts) >= MOST_LABELS:
                    return
                counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            counts[place] += 1
            self._totals[labels] = self._totals.get(labels, 0.0) + seconds

    @contextmanager
    def timed(self, *labels: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(time.perf_counter() - began, *labels)

    def all(self) -> dict[Labels, Buckets]:
        with self._lock:
            found = {
                labels: (list(counts), self._totals[labels])
                for labels, counts in self._counts.items()
            }
        return {labels: self._cumulative(*each) for labels, each in found.items()}

    def _cumulative(self, counts: Sequence[int], total: float) -> Buckets:
        so_far, pairs = 0, []
        for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
            so_far += count
            pairs.append((bound, so_far))
        return Buckets(tuple(pairs), total)


@dataclass(frozen=True, slots=True)
class Tallies:
    starts: Count = field(default_factory=Count)  # by executor: attempts handed over
    ends: Count = field(default_factory=Count)  # by kind of end: attempts of this server
    retries: Count = field(default_factory=Count)
    xids: Count = field(default_factory=Count)  # by GPU index and number of the error
    requests: Count = field(default_factory=Count)  # by method, route and status
    request_s: Spread = field(default_factory=lambda: Spread(_ANSWER_S))  # by route
    wait_s: Spread = field(default_factory=lambda: Spread(_WAIT_S))  # queued to handed over
    cancel_s: Spread = field(default_factory=lambda: Spread(_CANCEL_S))  # asked to proven gone
    pass_s: Spread = field(default_factory=lambda: Spread(_FAST_S))  # of the scheduler
    write_s: Spread = field(default_factory=lambda: Spread(_FAST_S))  # of the store
