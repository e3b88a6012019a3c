"""The newest state of jobs, alerts and the system as JSON, worked out once for all sockets."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool

from runyard.api import answers, monitor_answers
from runyard.api.json_body import dumped
from runyard.api.live_feed import LiveFeed
from runyard.api.routes.alerts import alert as alert_answer
from runyard.engine.read.views import JobView

_KEPT = 4000
_GOOD_FOR_S = 2.0  # times left and waits change without an event
_MOST_BEFORE_THE_END = 99.9  # only an end is 100 percent
# Enough for a row of a list.
_ROW = (
    "job_id",
    "name",
    "status",
    "stage",
    "progress",
    "reason",
    "eta",
    "health",
    "metrics",
    "main_metric",
    "attempt_number",
    "attempt_limit",
    "submitted_at",
    "queued_at",
    "scheduled_at",
    "started_at",
    "completed_at",
    "owner",
    "priority",
    "hold",
    "retry_count",
    "labels",
    "job_type",
    "array",
    "cpu_cores",
    "memory_gb",
    "gpu_count",
    "gpu_type",
)
_ATTEMPT = ("attempt_id", "number", "status", "end", "exit_code", "signal", "node", "gpus")


@dataclass(frozen=True, slots=True)
class Needed:
    """What a state must at least know of."""

    event_id: int = 0
    touches: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    knows: Needed
    made_at: float
    text: orjson.Fragment

    def serves(self, needed: Needed, now: float) -> bool:
        knows = self.knows
        fresh = now - self.made_at < _GOOD_FOR_S
        return fresh and knows.event_id >= needed.event_id and knows.touches >= needed.touches


class LiveStates:
    def __init__(self, feed: LiveFeed) -> None:
        self._feed = feed
        self._rows: OrderedDict[int, _Kept] = OrderedDict()
        self._jobs: OrderedDict[str, _Kept] = OrderedDict()
        self._turn = asyncio.Lock()  # many ask for the same at once: one works it out
        self._system: tuple[int, float, orjson.Fragment] | None = None

    async def rows(self, needed: Mapping[int, Needed]) -> list[orjson.Fragment]:
        """`{"type": "job", ...}` for each job that is still there."""
        if self._missing(needed):
            async with self._turn:
                if missing := self._missing(needed):
                    await self._make_rows(missing)
        kept = (self._rows.get(job_id) for job_id in needed)
        return [one.text for one in kept if one is not None]

    def _missing(self, needed: Mapping[int, Needed]) -> dict[int, Needed]:
        now = time.monotonic()
        return {
            job_id: need
            for job_id, need in needed.items()
            if (kept := self._rows.get(job_id)) is None or not kept.serves(need, now)
        }

    async def _make_rows(self, missing: Mapping[int, Needed]) -> None:
        heard, touches, now = self._feed.newest_heard(), self._feed.touches, time.monotonic()
        made = await run_in_threadpool(self._read_rows, list(missing))
        for job_id, need in missing.items():
            self._rows.pop(job_id, None)
            if job_id in made:
                # The events asked for were committed before this was read.
                knows = Needed(max(heard, need.event_id), max(touches, need.touches))
                self._rows[job_id] = _Kept(knows, now, made[job_id])
        _trim(self._rows)

    def _read_rows(self, job_ids: list[int]) -> dict[int, orjson.Fragment]:
        found = self._feed.yard.live.views(job_ids)
        return {view.job.id: orjson.Fragment(dumped(_row(view))) for view in found}

    async def job(self, ref: str, needed: Needed) -> orjson.Fragment:
        """Everything of one job; JobNotFound."""
        async with self._turn:
            kept, now = self._jobs.get(ref), time.monotonic()
            if kept is None or not kept.serves(needed, now):
                heard, touches = self._feed.newest_heard(), self._feed.touches
                text = await run_in_threadpool(self._read_job, ref)
                knows = Needed(max(heard, needed.event_id), max(touches, needed.touches))
                kept = self._jobs[ref] = _Kept(knows, now, text)
                self._jobs.move_to_end(ref)
                _trim(self._jobs)
            return kept.text

    def _read_job(self, ref: str) -> orjson.Fragment:
        view = self._feed.yard.job(ref)
        found = {"type": "job", **answers.job(view), "progress": _percent(view)}
        return orjson.Fragment(dumped(found))

    async def alerts(self, alert_ids: list[int]) -> list[dict[str, Any]]:
        found = await run_in_threadpool(self._feed.yard.live.alerts, alert_ids)
        return [{"type": "alert", **alert_answer(one)} for one in found]

    async def system(self, at_least: float) -> orjson.Fragment:
        """As it was measured last; not older than this moment of the monotonic clock."""
        async with self._turn:
            if self._system is None or self._system[1] < at_least:
                now = time.monotonic()
                text = await run_in_threadpool(self._read_system)
                self._system = (self._feed.node_count, now, text)
            return self._system[2]

    def _read_system(self) -> orjson.Fragment:
        found = monitor_answers.overview(self._feed.yard.overview())
        return orjson.Fragment(dumped({"type": "system", **found}))


def _row(view: JobView) -> dict[str, Any]:
    whole = answers.job(view)
    attempt = whole["attempt"]
    return {
        "type": "job",
        **{name: whole[name] for name in _ROW},
        "progress": _percent(view),
        "attempt": attempt and {name: attempt[name] for name in _ATTEMPT},
    }


def _percent(view: JobView) -> float:
    """The board knows it before the store does."""
    told = view.watched.progress
    if told is None or told.fraction is None:
        return view.job.progress
    return round(max(0.0, min(_MOST_BEFORE_THE_END, told.fraction * 100)), 2)


def _trim(kept: OrderedDict[Any, _Kept]) -> None:
    while len(kept) > _KEPT:
        kept.popitem(last=False)
