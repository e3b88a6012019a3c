"""What all live sockets of a server share: who is to be woken, and what changed since when.

Nothing is queued for a socket: each one keeps places (event ids, counts) and fetches what came
after them. A socket that is slow or asleep costs no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from starlette.concurrency import run_in_threadpool

from runyard.api.sample_ring import SampleRing
from runyard.domain.events import StoredEvent
from runyard.domain.monitoring.series import Sample
from runyard.engine.yard import Yard

MOST_MISSED = 10_000  # events; whoever missed more is better off loading anew
PAGE = 1000
_TOUCHED_JOBS = 10_000


class GapTooOld(Exception):
    """What was missed is gone, or too much."""


class LiveFeed:
    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self._recent = yard.hub.recent
        self._lock = threading.Lock()
        self._touched: OrderedDict[int, int] = OrderedDict()  # job -> count, last touched last
        self._touches = 0
        self.node_count = 0  # grows when a machine was measured
        self._rings: dict[int, SampleRing] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: set[asyncio.Event] = set()
        self._scheduled = False
        self._recent.on_more(self._heard)
        yard.board.on_samples(self._hear_samples)
        yard.board.on_told(self._touch)
        yard.board.on_node_samples(self._hear_node_samples)

    @property
    def sockets(self) -> int:
        return len(self._woken)

    @property
    def closing(self) -> bool:
        return self.yard.hub.closing

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """Set whenever something may be new."""
        self._loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        self._woken.add(woken)
        try:
            yield woken
        finally:
            self._woken.discard(woken)

    # events

    async def last_id(self) -> int:
        stored = await run_in_threadpool(self.yard.live.last_event_id)
        return max(stored, self._recent.last_id)

    def newest_heard(self) -> int:
        return self._recent.last_id

    async def events_after(self, event_id: int) -> list[StoredEvent]:
        """At most a page of them; GapTooOld when there are too many."""
        if self._recent.last_id <= event_id:
            return []
        if self._recent.last_id - event_id > MOST_MISSED:
            raise GapTooOld
        found = self._recent.after(event_id, PAGE)
        if found is None:
            found = await run_in_threadpool(self.yard.live.events_after, event_id, PAGE)
        return found

    async def stored_after(self, event_id: int) -> list[StoredEvent]:
        """The same, also of what was written before this server began."""
        found = self._recent.after(event_id, PAGE)
        if found is None:
            found = await run_in_threadpool(self.yard.live.events_after, event_id, PAGE)
        return found

    # progress of jobs

    @property
    def touches(self) -> int:
        return self._touches

    def touched_after(self, count: int) -> dict[int, int]:
        """Jobs of which something was recorded since: job -> count."""
        found: dict[int, int] = {}
        with self._lock:
            for job_id, touched in reversed(self._touched.items()):
                if touched <= count:
                    break
                found[job_id] = touched
        return found

    def open_ring(self, job_id: int) -> SampleRing:
        """Samples of this job from now on, until `close_ring`."""
        with self._lock:
            ring = self._rings.setdefault(job_id, SampleRing())
            ring.users += 1
            return ring

    def close_ring(self, job_id: int) -> None:
        with self._lock:
            ring = self._rings[job_id]
            ring.users -= 1
            if ring.users == 0:
                del self._rings[job_id]

    # told by other threads

    def _hear_samples(self, job_id: int, attempt: int, samples: Sequence[Sample]) -> None:
        with self._lock:
            ring = self._rings.get(job_id)
        if ring is not None:
            ring.add(attempt, samples)
        self._touch(job_id)

    def _touch(self, job_id: int) -> None:
        if not self._woken:
            return
        with self._lock:
            self._touches += 1
            self._touched[job_id] = self._touches
            self._touched.move_to_end(job_id)
            if len(self._touched) > _TOUCHED_JOBS:
                self._touched.popitem(last=False)
        self._heard()

    def _hear_node_samples(self, _node_id: str, _samples: Sequence[Sample]) -> None:
        self.node_count += 1
        self._heard()

    def _heard(self) -> None:
        if self._scheduled or self._loop is None or not self._woken:
            return
        self._scheduled = True
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has gone
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._scheduled = False
        for woken in self._woken:
            woken.set()
