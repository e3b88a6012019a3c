"""The queue: shapes with ready jobs, ready jobs in order, delays."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, and_, bindparam, func, literal_column, or_, select, text, update

from runyard.domain.job import Job, Priority
from runyard.domain.slices import Gang
from runyard.domain.states import WAITING, JobStatus
from runyard.stores import column_values, job_rows
from runyard.stores.base import WaitingJob, WaitingShape
from runyard.stores.column_types import Moment
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import IS_DELAYED, IS_NOT_READY, IS_READY, shapes, training_jobs

_jobs = training_jobs.c
_READY = text(IS_READY)
_NOT_READY = text(IS_NOT_READY)
_DELAYED = text(IS_DELAYED)
_BY_SHAPE = "INDEXED BY ix_training_jobs_ready_by_shape"
_BY_PRIORITY = "INDEXED BY ix_training_jobs_ready_by_priority"
_BY_RANK = sorted(Priority, key=lambda priority: priority.rank)


def _heads() -> Statement:
    """The first ready job of every shape that has one: from one head to the next shape's by one
    seek in the index, so that neither long queues nor old shapes cost anything."""

    def first(*more: Any) -> Any:
        return (
            select(_jobs.id)
            .where(_READY, *more)
            .order_by(_jobs.shape_id, _jobs.queued_at, _jobs.id)
            .limit(literal_column("1"))
            .with_hint(training_jobs, _BY_SHAPE, "sqlite")
        )

    heads = select(first().scalar_subquery().label("job_id")).cte("heads", recursive=True)
    previous = training_jobs.alias("previous")
    shape_before = (
        select(previous.c.shape_id)
        .where(previous.c.id == heads.c.job_id)
        .correlate(heads)
        .scalar_subquery()
    )
    following = first(_jobs.shape_id > shape_before).correlate(heads).scalar_subquery()
    heads = heads.union_all(select(following).where(heads.c.job_id.is_not(None)))
    return Statement(
        select(*shapes.c, _jobs.queued_at, _jobs.id.label("head_id")).select_from(
            heads.join(training_jobs, _jobs.id == heads.c.job_id).join(
                shapes, shapes.c.id == _jobs.shape_id
            )
        )
    )


_HEADS = _heads()
_WAITING_COLUMNS = (
    _jobs.id,
    _jobs.uuid,
    _jobs.shape_id,
    _jobs.queued_at,
    _jobs.attempt_number,
    _jobs.status,
)
_LIMIT = bindparam("count", type_=Integer)
_READY_OF_SHAPE = Statement(
    select(*_WAITING_COLUMNS)
    .where(_READY, _jobs.shape_id == bindparam("shape"))
    .order_by(_jobs.queued_at, _jobs.id)
    .limit(_LIMIT)
    .with_hint(training_jobs, _BY_SHAPE, "sqlite")
)
_AHEAD = and_(
    _READY,
    _jobs.priority == bindparam("level"),
    _jobs.queued_at <= bindparam("queued", type_=Moment),
    or_(
        _jobs.queued_at < bindparam("queued", type_=Moment),
        _jobs.id < bindparam("the_id"),
    ),
)
_OF_PRIORITY = and_(_READY, _jobs.priority == bindparam("level"))
_count = (
    select(func.count().label("many"))
    .select_from(training_jobs)
    .with_hint(training_jobs, _BY_PRIORITY, "sqlite")
)
_COUNT_AHEAD = Statement(_count.where(_AHEAD))
_COUNT_PRIORITY = Statement(_count.where(_OF_PRIORITY))


def _first(which: Any, index: str, *columns: Any) -> Statement:
    return Statement(
        select(*columns)
        .where(which)
        .order_by(_jobs.queued_at, _jobs.id)
        .limit(_LIMIT)
        .with_hint(training_jobs, index, "sqlite")
    )


_FIRST_AHEAD = _first(_AHEAD, _BY_PRIORITY, *_WAITING_COLUMNS)
_FIRST_OF_PRIORITY = _first(_OF_PRIORITY, _BY_PRIORITY, *_WAITING_COLUMNS)
_WHOLE_OF_PRIORITY = _first(_OF_PRIORITY, _BY_PRIORITY, training_jobs)
_WHOLE_NOT_READY = _first(_NOT_READY, "INDEXED BY ix_training_jobs_not_ready", training_jobs)
_BY_DELAY = "INDEXED BY ix_training_jobs_delayed"
_NEXT_DELAYED = Statement(
    select(_jobs.not_before)
    .where(_DELAYED)
    .order_by(_jobs.not_before)
    .limit(literal_column("1"))
    .with_hint(training_jobs, _BY_DELAY, "sqlite")
)
_WAKE = Statement(
    update(training_jobs)
    .where(_DELAYED, _jobs.not_before <= bindparam("moment", type_=Moment))
    .with_hint(_BY_DELAY, dialect_name="sqlite"),
    ("ready",),
)


class QueueReads(Session):
    def waiting_shapes(self) -> list[WaitingShape]:
        return [
            WaitingShape(
                id=row.id,
                priority=Priority(row.priority),
                request=column_values.request_from(row),
                executor=row.executor,
                array_id=row.array_id,
                array_limit=row.array_limit,
                wait=column_values.reason_from(row.wait_code, row.wait_params),
                gang=None if row.gang is None else Gang(**row.gang),
                head_queued_at=row.queued_at,
                head_job_id=row.head_id,
            )
            for row in self._rows(_HEADS)
        ]

    def ready_jobs(self, shape_id: int, limit: int) -> list[WaitingJob]:
        return [_waiting(row) for row in self._rows(_READY_OF_SHAPE, shape=shape_id, count=limit)]

    def position(self, job: Job) -> int | None:
        if not (job.ready and job.status in WAITING):
            return None
        ahead: int = self._rows(
            _COUNT_AHEAD, level=job.priority.value, queued=job.queued_at, the_id=job.id
        )[0].many
        for priority in _BY_RANK[: job.priority.rank]:
            ahead += self._rows(_COUNT_PRIORITY, level=priority.value)[0].many
        return ahead + 1

    def waiting_ahead(self, job: Job, limit: int) -> list[WaitingJob]:
        found: list[WaitingJob] = []
        for priority in _BY_RANK[: job.priority.rank]:
            if len(found) < limit:
                count = limit - len(found)
                some = self._rows(_FIRST_OF_PRIORITY, level=priority.value, count=count)
                found += [_waiting(row) for row in some]
        if len(found) < limit:
            some = self._rows(
                _FIRST_AHEAD,
                level=job.priority.value,
                queued=job.queued_at,
                the_id=job.id,
                count=limit - len(found),
            )
            found += [_waiting(row) for row in some]
        return found

    def waiting_jobs(self, limit: int) -> list[Job]:
        found: list[Any] = []
        for priority in _BY_RANK:
            if len(found) < limit:
                left = limit - len(found)
                found += self._rows(_WHOLE_OF_PRIORITY, level=priority.value, count=left)
        if len(found) < limit:
            found += self._rows(_WHOLE_NOT_READY, count=limit - len(found))
        return [job_rows.job_from(row) for row in found]

    def next_delayed(self) -> float | None:
        row = self._row(_NEXT_DELAYED)
        return None if row is None else row.not_before


class QueueWrites(QueueReads):
    def wake_delayed(self, now: float) -> int:
        return self._run(_WAKE, moment=now, ready=True)


def _waiting(row: Any) -> WaitingJob:
    return WaitingJob(
        row.id, row.uuid, row.shape_id, row.queued_at, row.attempt_number, JobStatus(row.status)
    )
