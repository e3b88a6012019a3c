"""The newest samples of a job that somebody follows, shared by all who do."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from runyard.domain.monitoring.series import Sample

_KEPT = 50_000


class SampleRing:
    """Places count up from 0 for ever; what has too low a place is gone. For any thread."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._samples: list[tuple[int, Sample]] = []
        self._first = 0
        self.users = 0

    @property
    def end(self) -> int:
        """The place of the next one."""
        with self._lock:
            return self._first + len(self._samples)

    def add(self, attempt: int, samples: Sequence[Sample]) -> None:
        with self._lock:
            self._samples += [(attempt, sample) for sample in samples]
            if len(self._samples) >= 2 * self._kept:  # trimmed in lumps
                self._first += len(self._samples) - self._kept
                del self._samples[: -self._kept]

    def after(self, place: int, limit: int) -> list[tuple[int, Sample]] | None:
        """(attempt, sample) from this place on; None when some of them are gone."""
        with self._lock:
            start = place - self._first
            return None if start < 0 else self._samples[start : start + limit]
