"""Jobs: one by one, and every guarded change of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from runyard.domain import errors
from runyard.domain.events import JOB_SUBMITTED, Event
from runyard.domain.job import Dependency, Job, NewJob, Priority
from runyard.domain.states import ENDED, JobStatus, Move
from runyard.stores import job_rows
from runyard.stores.base_notifications import EndedJob
from runyard.stores.column_types import to_the_microsecond
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.sql_events import EventWrites
from runyard.stores.sql_shapes import ShapeWrites
from runyard.stores.tables import job_dependencies, job_labels, training_jobs

_jobs = training_jobs.c
_BY_ID = Statement(select(training_jobs).where(_jobs.id == bindparam("the_id")))
_BY_REF = Statement(select(training_jobs).where(_jobs.uuid == bindparam("ref")))
_COUNTS = Statement(select(_jobs.status, func.count().label("many")).group_by(_jobs.status))
_DEPENDENCIES = Statement(
    select(
        job_dependencies.c.depends_on_id, job_dependencies.c.condition, _jobs.uuid, _jobs.status
    )
    .select_from(
        job_dependencies.join(training_jobs, job_dependencies.c.depends_on_id == _jobs.id)
    )
    .where(job_dependencies.c.job_id == bindparam("the_id"))
    .order_by(job_dependencies.c.depends_on_id)
)
_DEPENDENTS = Statement(
    select(job_dependencies.c.job_id, job_dependencies.c.condition)
    .where(job_dependencies.c.depends_on_id == bindparam("the_id"))
    .order_by(job_dependencies.c.job_id)
)
_INSERT = Statement(
    insert(training_jobs).inline(), [c.key for c in _jobs if c.key != "id"], gives=_jobs.id
)
_INSERT_LABEL = Statement(insert(job_labels).inline(), ("job_id", "name", "value"))
_INSERT_DEPENDENCY = Statement(
    insert(job_dependencies).inline(), ("job_id", "depends_on_id", "condition")
)
_DELETE = Statement(delete(training_jobs).where(_jobs.id == bindparam("the_id")))

MOVE_CHANGES = frozenset(
    {
        "stage",
        "progress",
        "retry_count",
        "charged",
        "attempt_number",
        "ready",
        "not_before",
        "hold",
        "queued_at",
        "scheduled_at",
        "started_at",
        "completed_at",
    }
)


@cache
def some_jobs_by_id(count: int) -> Statement:
    places = [bindparam(f"id_{place}", type_=_jobs.id.type) for place in range(count)]
    return Statement(select(training_jobs).where(_jobs.id.in_(places)))


@cache
def _guarded_update(
    columns: frozenset[str], expect: frozenset[JobStatus], ends: bool = False
) -> Statement:
    words: list[ColumnElement[str]] = [
        literal_column(f"'{status.value}'") for status in sorted(expect)
    ]
    guarded = update(training_jobs).where(_jobs.id == bindparam("the_id"), _jobs.status.in_(words))
    if not columns:  # only the guard and an event
        guarded = guarded.values(status=_jobs.status)
    # What an end has to tell is in the rest of the spec.
    wanted = (_jobs.uuid, _jobs.spec) if ends else (_jobs.uuid,)
    return Statement(guarded.returning(*wanted), sorted(columns))


class JobReads(Session):
    def job(self, ref: str | int) -> Job | None:
        if isinstance(ref, str) and not (ref.isascii() and ref.isdigit()):
            row = self._row(_BY_REF, ref=ref)
        else:
            number = int(ref) if len(str(ref)) < 20 else 0
            row = self._row(_BY_ID, the_id=number) if number < 2**63 else None
        return None if row is None else job_rows.job_from(row)

    def jobs_by_id(self, ids: Sequence[int]) -> list[Job]:
        return [job_rows.job_from(row) for row in self._rows_by_id(some_jobs_by_id, ids)]

    def count_by_status(self) -> dict[JobStatus, int]:
        self._driver.before_search()
        counts = dict.fromkeys(JobStatus, 0)
        for row in self._rows(_COUNTS):
            counts[JobStatus(row.status)] = row.many
        return counts

    def dependencies(self, job_id: int) -> list[tuple[Dependency, str, JobStatus]]:
        return [
            (Dependency(row.depends_on_id, row.condition), row.uuid, JobStatus(row.status))
            for row in self._rows(_DEPENDENCIES, the_id=job_id)
        ]

    def dependents(self, job_id: int) -> list[tuple[int, Dependency]]:
        return [
            (row.job_id, Dependency(job_id, row.condition))
            for row in self._rows(_DEPENDENTS, the_id=job_id)
        ]


class JobWrites(JobReads, EventWrites, ShapeWrites):
    def insert_jobs(self, jobs: Sequence[NewJob]) -> list[Job]:
        shape_ids = [self._shape_id(new.priority, new.spec) for new in jobs]
        ids = self._insert_many(
            _INSERT,
            [job_rows.job_columns(new, shape) for new, shape in zip(jobs, shape_ids, strict=True)],
        )
        stored = [
            new.as_job(job_id, shape, to_the_microsecond(new.submitted_at))
            for new, job_id, shape in zip(jobs, ids, shape_ids, strict=True)
        ]
        self._insert_labels(stored)
        self._insert_dependencies(jobs, ids)
        for job in stored:
            told = Event(JOB_SUBMITTED, job.submitted_at, job.owner)
            self._tell(job.id, job.ref, told)
        return stored

    def _insert_labels(self, jobs: Sequence[Job]) -> None:
        labels = [
            {"job_id": job.id, "name": name, "value": value}
            for job in jobs
            for name, value in job.spec.labels.items()
        ]
        if labels:
            self._run_many(_INSERT_LABEL, labels)

    def _insert_dependencies(self, jobs: Sequence[NewJob], ids: Sequence[int]) -> None:
        dependencies = [
            {"job_id": job_id, "depends_on_id": dependency.job_id, "condition": dependency.on}
            for new, job_id in zip(jobs, ids, strict=True)
            for dependency in new.depends_on
        ]
        if dependencies:
            self._run_many(_INSERT_DEPENDENCY, dependencies)

    def apply(self, move: Move) -> None:
        unknown = move.changes.keys() - MOVE_CHANGES
        if unknown:
            raise TypeError(f"a move cannot change {', '.join(sorted(unknown))}")
        changes = {**move.changes, "status": move.to, "reason": move.reason}
        ends = move.to in ENDED
        changed = self._change(move.job_id, move.expect, changes, move.event, ends=ends)
        if ends:
            self._ended.append(EndedJob(move.job_id, bool(changed.spec.get("notify"))))

    def update_job(
        self,
        job_id: int,
        expect: frozenset[JobStatus],
        event: Event | None = None,
        **changes: Any,
    ) -> None:
        unknown = changes.keys() - MOVE_CHANGES - {"reason", "priority"}
        if unknown:
            raise TypeError(f"an update cannot change {', '.join(sorted(unknown))}")
        if "priority" in changes:
            job = self.job(job_id)
            if job is None:
                raise errors.StaleWrite(job=job_id)
            changes["shape_id"] = self._shape_id(Priority(changes["priority"]), job.spec)
        self._change(job_id, expect, changes, event)

    def delete_job(self, job_id: int) -> None:
        self._forget_events(job_id)
        if not self._run(_DELETE, the_id=job_id):
            raise errors.JobNotFound(job=job_id)

    def _change(
        self,
        job_id: int,
        expect: frozenset[JobStatus],
        changes: Mapping[str, Any],
        event: Event | None,
        *,
        ends: bool = False,
    ) -> Any:
        """The row's uuid, and of an end its spec."""
        columns = _columns_of(changes)
        if not expect:
            raise errors.StaleWrite(job=job_id)
        statement = _guarded_update(frozenset(columns), expect, ends)
        changed = self._row(statement, the_id=job_id, **columns)
        if changed is None:
            raise errors.StaleWrite(job=job_id)
        if event is not None:
            self._tell(job_id, cast(str, changed.uuid), event)
        return changed


def _columns_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    columns = {
        name: value.value if isinstance(value, Enum) else value for name, value in changes.items()
    }
    if "reason" in columns:
        reason = columns.pop("reason")
        columns["reason_code"] = reason.code if reason else None
        columns["reason_params"] = reason.params if reason else None
    return columns
