"""Lets coroutines wait for a job to change without holding a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from runyard.domain.events import StoredEvent
from runyard.engine.recent_events import RecentEvents


class Watch:
    """Becomes set whenever one of the watched jobs changes. Use from one event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._changed = asyncio.Event()
        self.closing = False

    async def wait(self, timeout: float) -> bool:
        """True when something changed since the last call, False after `timeout` seconds."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout)
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def _set(self) -> None:
        # The loop may be closed already while the last events of a shutdown arrive.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)


class Hub:
    """Told of every committed event; wakes the watches it concerns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[int | None, set[Watch]] = {}
        self.recent = RecentEvents()
        self.closing = False

    def publish(self, events: Sequence[StoredEvent]) -> None:
        self.recent.add(events)
        with self._lock:
            concerned = set(self._watches.get(None, ()))
            for event in events:
                concerned |= self._watches.get(event.job_id, set())
        for watch in concerned:
            watch._set()

    @contextmanager
    def watch(self, *job_ids: int) -> Iterator[Watch]:
        """Watch these jobs, or all when none is named."""
        watch = Watch(asyncio.get_running_loop())
        watch.closing = self.closing
        keys: tuple[int | None, ...] = job_ids or (None,)
        with self._lock:
            for key in keys:
                self._watches.setdefault(key, set()).add(watch)
        try:
            yield watch
        finally:
            with self._lock:
                for key in keys:
                    left = self._watches[key]
                    left.discard(watch)
                    if not left:
                        del self._watches[key]

    def close(self) -> None:
        """Wake everyone and tell them that the server is going away."""
        self.closing = True
        with self._lock:
            everyone = {watch for watches in self._watches.values() for watch in watches}
        for watch in everyone:
            watch.closing = True
            watch._set()
        self.recent.tell()
