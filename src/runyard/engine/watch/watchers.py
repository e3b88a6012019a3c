"""Who looks at what just now: it is measured and read more often for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SYSTEM = "system"
LOOKS_FOR_S = 15.0  # whoever asked may ask again


def of_job(job_id: int) -> str:
    """The topic of one job."""
    return f"job:{job_id}"


class Watchers:
    """Marks that run out by themselves: whoever looks on renews them. For any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}

    def watch(self, topic: str, seconds: float = LOOKS_FOR_S) -> None:
        """Somebody looks at this for so long; a shorter time than before changes nothing."""
        until = self._clock() + seconds
        with self._lock:
            self._until[topic] = max(until, self._until.get(topic, until))

    def is_watched(self, topic: str) -> bool:
        with self._lock:
            return self._until.get(topic, 0.0) > self._clock()

    def anybody(self) -> bool:
        """Whether anything at all is looked at."""
        now = self._clock()
        with self._lock:
            if self._until and max(self._until.values()) <= now:
                self._until.clear()
            return bool(self._until)
