"""The newest events in memory, so that many who listen cost the store nothing."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

from runyard.domain.events import StoredEvent

_KEPT = 2000
_BY_ID = attrgetter("id")


class RecentEvents:
    """Told of every committed event in order of id, perhaps more than once. For any thread."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._events: list[StoredEvent] = []
        self._floor: int | None = None  # all later ones are here
        self._last = 0
        self._hear: list[Callable[[], None]] = []

    @property
    def last_id(self) -> int:
        """Of the newest one heard; 0 before the first."""
        return self._last

    def add(self, events: Sequence[StoredEvent]) -> None:
        with self._lock:
            new = [event for event in events if event.id > self._last]
            if not new:
                return
            if self._floor is None:
                self._floor = new[0].id - 1
            self._events += new
            self._last = new[-1].id
            if len(self._events) >= 2 * self._kept:  # trimmed in lumps
                self._floor = self._events[-self._kept - 1].id
                del self._events[: -self._kept]
        self.tell()

    def tell(self) -> None:
        """Wake those who listen."""
        for hear in self._hear:
            hear()

    def after(self, event_id: int, limit: int) -> list[StoredEvent] | None:
        """The first ones after this; None when some of them are not here any more."""
        with self._lock:
            if self._floor is None or event_id < self._floor:
                return None
            first = bisect_right(self._events, event_id, key=_BY_ID)
            return self._events[first : first + limit]

    def on_more(self, hear: Callable[[], None]) -> None:
        """`hear` is called by the thread that tells: it must be quick."""
        self._hear.append(hear)
