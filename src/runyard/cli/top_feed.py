"""What `runyard top` shows, kept up to date beside it."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from runyard.cli.feeding import Feeding
from runyard.cli.top_page import Now
from runyard.sdk import errors
from runyard.sdk.client import Client

WAITING_SHOWN = 20
_CURVES = 60  # jobs whose loss is drawn
_POINTS = 200
_QUEUE_EVERY_S = 2.0


class TopFeed:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._status: dict[str, Any] = {}
        self._waiting: list[dict[str, Any]] = []
        self._losses: dict[str, deque[float]] = {}
        self._queue_due = 0.0
        self.feeding = Feeding(client, ("system", "jobs"), self._hear, self.ask)

    def now(self) -> Now:
        with self._lock:
            losses = {job: list(values) for job, values in self._losses.items()}
            return Now(self._status, self._waiting, losses, self.feeding.is_live)

    def ask(self) -> None:
        """Everything, now."""
        self._take(self._client.monitor_status())
        self._queue_due = 0.0
        self._ask_queue()

    def _hear(self, message: dict[str, Any]) -> None:
        for event in message.get("events") or ():
            if event.get("type") == "system":
                self._take(event)
        if message.get("topic") == "jobs" or "reload" in message:
            self._ask_queue()

    def _take(self, status: dict[str, Any]) -> None:
        running = {str(job["job_id"]): job for job in status.get("running") or ()}
        new = {
            job: self._loaded(job) for job in list(running)[:_CURVES] if job not in self._losses
        }
        with self._lock:
            self._status = status
            kept = self._losses | new
            self._losses = {job: kept[job] for job in running if job in kept}
            for job, values in self._losses.items():
                loss = (running[job].get("metrics") or {}).get("loss")
                if job not in new and loss is not None:
                    values.append(float(loss))

    def _loaded(self, job: str) -> deque[float]:
        try:
            found = self._client.metrics(job, keys="loss", points=_POINTS).get("loss")
        except errors.RunyardError:
            found = None
        return deque(found["values"] if found else (), maxlen=_POINTS)

    def _ask_queue(self) -> None:
        if time.monotonic() < self._queue_due:
            return
        self._queue_due = time.monotonic() + _QUEUE_EVERY_S
        waiting = list(self._client.queue_status(limit=WAITING_SHOWN).get("waiting") or ())
        with self._lock:
            self._waiting = waiting
