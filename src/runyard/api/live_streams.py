"""Topics of the live socket that go on from a place of their own: metrics and the system."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool

from runyard.api.live_feed import GapTooOld, LiveFeed
from runyard.api.live_states import LiveStates
from runyard.api.live_topics import Asked
from runyard.api.metric_answers import number
from runyard.domain.monitoring.series import Sample
from runyard.engine.watch.watchers import SYSTEM, of_job
from runyard.stores.base_metrics import MetricRange

_SYSTEM_EVERY_S = 1.0
_PER_BATCH = 5000  # samples
_MOST_OF_A_SERIES = 5000
_MOST_MISSED = 20_000  # samples
_LATE_S = 10.0  # what was measured at one time may arrive so much later
_ASK_STORE_S = 1.0
_OF_THE_SYSTEM = ("system.", "gpu.")


class StreamTopic(Protocol):
    name: str
    watched: str | None  # marked as looked at, for as long as somebody subscribes
    polled: bool  # nothing wakes it when there is more

    async def more(self) -> tuple[list[Any], str | None] | None:
        """The next events, and the topic that goes on after them; None when there is nothing;
        GapTooOld when some are gone."""
        ...

    def skip(self) -> None:
        """After GapTooOld: go on with what comes from now on."""
        ...

    def close(self) -> None: ...


class SystemTopic:
    """Machines, GPUs and what runs, as last measured: the same as GET /monitor/status."""

    polled = False

    def __init__(self, feed: LiveFeed, states: LiveStates) -> None:
        self.name = "system"
        self.watched: str | None = SYSTEM
        self._feed = feed
        self._states = states
        self._seen: tuple[int, int] | None = None
        self._sent_at = 0.0

    async def more(self) -> tuple[list[Any], str | None] | None:
        now = time.monotonic()
        seen = (self._feed.node_count, self._feed.newest_heard())
        if seen == self._seen or now - self._sent_at < _SYSTEM_EVERY_S:
            return None
        at_least = now - _SYSTEM_EVERY_S / 2 if self._seen else now - 2 * _SYSTEM_EVERY_S
        state = await self._states.system(at_least)
        self._seen, self._sent_at = seen, now
        return [state], None

    def skip(self) -> None:
        pass

    def close(self) -> None:
        pass


class MetricsTopic:
    """Every sample of a job as it is recorded, after those that were missed."""

    def __init__(self, feed: LiveFeed, asked: Asked, job_id: int, *, remote: bool) -> None:
        self.name = asked.name
        self.watched: str | None = of_job(job_id)
        self.polled = remote
        self._feed = feed
        self._ref = asked.ref
        self._job_id = job_id
        self._remote = remote  # another server records it: only the store can be asked
        self._ring = feed.open_ring(job_id)
        self._place = self._ring.end
        self._overlap = 0  # up to this place some may have been sent from the store
        self._missed = MetricRange(since=asked.at, since_step=asked.step)
        self._catch_up = asked.at is not None or asked.step is not None
        self._sent: deque[tuple[Any, ...]] = deque(maxlen=_MOST_MISSED)
        begun = time.time() if asked.at is None else asked.at
        self._newest = {True: begun, False: begun}  # of the system's, of its own
        self._asked_at = 0.0

    def close(self) -> None:
        self._feed.close_ring(self._job_id)

    def skip(self) -> None:
        self._place, self._catch_up = self._ring.end, False
        self._newest = dict.fromkeys(self._newest, time.time())

    async def more(self) -> tuple[list[Any], str | None] | None:
        if self._catch_up:
            self._catch_up = False
            events = await self._stored(self._missed)
        elif self._remote:
            events = await self._asked_again()
        else:
            events = self._recorded()
        return (events, self._following()) if events else None

    def place(self) -> str:
        return self._following()

    def _recorded(self) -> list[Any]:
        found = self._ring.after(self._place, _PER_BATCH)
        if found is None:
            raise GapTooOld
        self._place += len(found)
        if self._sent:
            known = set(self._sent)
            found = [pair for pair in found if _key(pair[1]) not in known]
            if self._place >= self._overlap:
                self._sent.clear()  # only what was recorded during the catch-up can be known
        self._note(sample for _, sample in found)
        by_attempt: dict[int, list[Sample]] = {}
        for attempt, sample in found:
            by_attempt.setdefault(attempt, []).append(sample)
        return [_points(number, samples) for number, samples in by_attempt.items()]

    async def _asked_again(self) -> list[Any]:
        now = time.monotonic()
        if now - self._asked_at < _ASK_STORE_S:
            return []
        self._asked_at = now
        return await self._stored(MetricRange(since=self._following_at()))

    async def _stored(self, chosen: MetricRange) -> list[Any]:
        yard = self._feed.yard
        found = await run_in_threadpool(yard.metrics, self._ref, None, _MOST_OF_A_SERIES, chosen)
        samples = [sample for series in found.values() for sample in series.samples]
        if any(series.sampled for series in found.values()) or len(samples) > _MOST_MISSED:
            raise GapTooOld
        known = set(self._sent)
        self._overlap = self._ring.end
        new = [sample for sample in samples if _key(sample) not in known]
        self._sent += [_key(sample) for sample in new]
        self._note(new)
        return [_points(None, new)] if new else []

    def _note(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            kind = sample.name.startswith(_OF_THE_SYSTEM)
            self._newest[kind] = max(self._newest[kind], sample.at)

    def _following_at(self) -> float:
        return max(0.0, min(self._newest.values()) - _LATE_S)

    def _following(self) -> str:
        return f"{self.name}:@{self._following_at():.3f}"


def _key(sample: Sample) -> tuple[Any, ...]:
    return sample.name, sample.step, round(sample.at * 1000)  # the store may round a little


def _points(attempt: int | None, samples: Sequence[Sample]) -> dict[str, Any]:
    series: dict[str, dict[str, list[Any]]] = {}
    for sample in samples:
        one = series.setdefault(sample.name, {"steps": [], "times": [], "values": []})
        one["steps"].append(sample.step)
        one["times"].append(sample.at)
        one["values"].append(number(sample.value))
    return {"type": "points", "attempt": attempt, "series": series}
