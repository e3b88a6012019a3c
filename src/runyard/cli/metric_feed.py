"""The series of a job, loaded once and then kept up to date."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

from runyard.cli.feeding import Feeding
from runyard.cli.metric_plot import Series
from runyard.sdk.client import Client

_ENDED = ("completed", "failed", "cancelled")

Point = tuple[str, int | None, float, float]  # name, step, time, value


class MetricFeed:
    def __init__(
        self, client: Client, job_id: str, load: Callable[[], dict[str, Series]], kept: int
    ) -> None:
        self._client = client
        self._job_id = job_id
        self._load = load
        self._kept = kept
        self._lock = threading.Lock()
        self._series: dict[str, Series] = {}
        self._fresh: list[Point] = []
        topics = (f"metrics:{job_id}", f"job:{job_id}")
        self._feeding = Feeding(client, topics, self._hear, self._ask)

    def __enter__(self) -> MetricFeed:
        self._feeding.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._feeding.__exit__(*error)

    @property
    def over(self) -> bool:
        return self._feeding.over

    def wait(self, seconds: float) -> None:
        self._feeding.wait(seconds)

    def series(self) -> dict[str, Series]:
        with self._lock:
            return copy.deepcopy(self._series)

    def fresh(self) -> list[Point]:
        """Points that came since this was last asked."""
        with self._lock:
            found, self._fresh = self._fresh, []
            return found

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("topic") == f"job:{self._job_id}":
            states = [event for event in message["events"] if event.get("type") == "job"]
            # The socket was told of the job before: it may have ended meanwhile.
            if states and states[-1]["status"] in _ENDED:
                self._finish()
            elif not message["events"]:
                self._look()
        elif "reload" in message or not message.get("events"):
            self._merge(self._load())
        else:
            for event in message["events"]:
                if event.get("type") == "points":
                    self._add(event["series"])

    def _ask(self) -> None:
        self._merge(self._load())
        self._look()

    def _look(self) -> None:
        if self._client.get(self._job_id)["status"] in _ENDED:
            self._finish()

    def _finish(self) -> None:
        self._merge(self._load())
        self._feeding.stop()

    def _merge(self, loaded: dict[str, Series]) -> None:
        self._add(
            {
                name: {"steps": one.steps, "times": one.times, "values": one.values}
                for name, one in loaded.items()
            }
        )

    def _add(self, found: dict[str, dict[str, Any]]) -> None:
        with self._lock:
            for name, columns in found.items():
                series = self._series.setdefault(name, Series())
                new = series.add(columns, self._kept)
                self._fresh += [(name, *point) for point in new][-self._kept :]
