"""What the live socket reads: events in order, and the newest state of what they concern."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.domain.events import StoredEvent
from runyard.domain.job import Job
from runyard.domain.monitoring.alert import Alert
from runyard.engine.parts import Parts
from runyard.engine.read.views import JobView, Views


class LiveReads:
    def __init__(self, parts: Parts, views: Views) -> None:
        self._parts = parts
        self._views = views

    def last_event_id(self) -> int:
        with self._parts.store.read() as reader:
            return reader.last_event_id()

    def events_after(self, event_id: int, limit: int) -> list[StoredEvent]:
        with self._parts.store.read() as reader:
            return reader.events(after=event_id, limit=limit)

    def views(self, job_ids: Sequence[int]) -> list[JobView]:
        """As in a list: without position and estimate. Jobs that are gone are left out."""
        return self._views.some(job_ids)

    def job(self, job_id: int) -> Job | None:
        with self._parts.store.read() as reader:
            return next(iter(reader.jobs_by_id([job_id])), None)

    def alerts(self, alert_ids: Sequence[int]) -> list[Alert]:
        with self._parts.store.read() as reader:
            found = [reader.alert(alert_id) for alert_id in alert_ids]
        return [alert for alert in found if alert is not None]
