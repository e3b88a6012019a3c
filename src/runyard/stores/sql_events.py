"""Events: written with the change they tell, in order of their ids."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, bindparam, func, insert, select

from runyard.domain import errors
from runyard.domain.events import Event, StoredEvent
from runyard.stores.column_types import to_the_microsecond
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import events, training_jobs

_WITH_REF = select(*events.c, training_jobs.c.uuid.label("job_ref")).select_from(
    events.outerjoin(training_jobs, events.c.job_id == training_jobs.c.id)
)

_AFTER = (
    _WITH_REF.where(events.c.id > bindparam("after"))
    .order_by(events.c.id)
    .limit(bindparam("count", type_=Integer))
)
ALL_AFTER = Statement(_AFTER)
OF_JOB_AFTER = Statement(_AFTER.where(events.c.job_id == bindparam("the_job")))
LAST_ID = Statement(select(func.max(events.c.id).label("last")))
_REF = Statement(select(training_jobs.c.uuid).where(training_jobs.c.id == bindparam("the_job")))
_INSERT = Statement(
    insert(events).inline(), [c.key for c in events.c if c.key != "id"], gives=events.c.id
)


class EventReads(Session):
    def events(
        self, job_id: int | None = None, *, after: int = 0, limit: int = 1000
    ) -> list[StoredEvent]:
        self.flush_events()
        if job_id is None:
            found = self._rows(ALL_AFTER, after=after, count=limit)
        else:
            found = self._rows(OF_JOB_AFTER, after=after, count=limit, the_job=job_id)
        return [_stored_event_from(row) for row in found]

    def last_event_id(self) -> int:
        self.flush_events()
        row = self._row(LAST_ID)
        return (row.last if row else None) or 0

    def flush_events(self) -> None:
        """Write the events told so far. Put off to the end of a transaction, because in a shared
        store the ids are given under a lock that lasts until the commit."""
        if not self._pending_events:
            return
        pending, self._pending_events = self._pending_events, []
        self._driver.before_events()
        ids = self._insert_many(_INSERT, [_event_columns(told) for told in pending])
        for event_id, told in zip(ids, pending, strict=True):
            self.told.append(StoredEvent(event_id, told.job_id, told.job_ref, told.event))


class EventWrites(EventReads):
    def append_event(self, job_id: int | None, event: Event) -> int:
        job_ref = None
        if job_id is not None:
            row = self._row(_REF, the_job=job_id)
            if row is None:
                raise errors.JobNotFound(job=job_id)
            job_ref = row.uuid
        self._tell(job_id, job_ref, event)
        self.flush_events()
        return self.told[-1].id

    def _tell(self, job_id: int | None, job_ref: str | None, event: Event) -> None:
        at = to_the_microsecond(event.at)
        kept = Event(event.code, at, event.actor, event.attempt_id, event.params)
        self._pending_events.append(StoredEvent(0, job_id, job_ref, kept))

    def _forget_events(self, job_id: int) -> None:
        """Of a job that this transaction deletes."""
        self._pending_events = [told for told in self._pending_events if told.job_id != job_id]


def _event_columns(told: StoredEvent) -> dict[str, Any]:
    event = told.event
    return {
        "job_id": told.job_id,
        "code": event.code,
        "at": event.at,
        "actor": event.actor,
        "attempt_id": event.attempt_id,
        "params": event.params,
    }


def _stored_event_from(row: Any) -> StoredEvent:
    event = Event(row.code, row.at, row.actor, row.attempt_id, row.params)
    return StoredEvent(row.id, row.job_id, row.job_ref, event)
