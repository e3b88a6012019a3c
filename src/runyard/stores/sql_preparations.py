"""Preparations."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, insert, literal_column, select, text, update

from runyard.domain import errors
from runyard.domain.job import Job
from runyard.domain.preparation import Preparation
from runyard.domain.reasons import PREPARING
from runyard.domain.states import AttemptStatus, Stage
from runyard.stores import job_rows
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import IS_NOT_READY, IS_READY, preparations, training_jobs

_columns = preparations.c
_BY_ID = Statement(select(preparations).where(_columns.preparation_id == bindparam("the_id")))
_OF_JOB = Statement(
    select(preparations).where(_columns.job_id == bindparam("the_job")).order_by(_columns.number)
)
_live = select(preparations).where(text("preparations.status <> 'ended'"))
_live = _live.order_by(_columns.created_at, _columns.preparation_id)
_ALL_LIVE = Statement(_live)
_LIVE_OF_NODE = Statement(_live.where(_columns.node_id == bindparam("node")))
_UNPREPARED = Statement(
    select(training_jobs)
    .where(text(IS_NOT_READY), training_jobs.c.reason_code == PREPARING)
    .order_by(training_jobs.c.queued_at, training_jobs.c.id)
    .with_hint(training_jobs, "INDEXED BY ix_training_jobs_not_ready", "sqlite")
)
_INSERT = Statement(insert(preparations).inline(), [c.key for c in _columns])

CHANGES = frozenset(
    {
        "status",
        "stage",
        "stop_seq",
        "exit_code",
        "signal",
        "cause",
        "outcome",
        "receipt",
        "started_at",
        "ended_at",
    }
)


@cache
def _guarded_update(columns: frozenset[str], expect: frozenset[AttemptStatus]) -> Statement:
    words: list[ColumnElement[str]] = [
        literal_column(f"'{status.value}'") for status in sorted(expect)
    ]
    guarded = update(preparations).where(
        _columns.preparation_id == bindparam("the_id"), _columns.status.in_(words)
    )
    return Statement(guarded, sorted(columns))


_ELSEWHERE = Statement(
    select(_columns.job_id)
    .select_from(preparations.join(training_jobs, training_jobs.c.id == _columns.job_id))
    .where(
        text(IS_READY),
        _columns.exit_code == 0,
        # An image is no reason to stay: a runner pulls what its machine lacks.
        text(f"preparations.stage <> '{Stage.PULL.value}'"),
        _columns.node_id != bindparam("node"),
    )
)


class PreparationReads(Session):
    def preparation(self, preparation_id: str) -> Preparation | None:
        row = self._row(_BY_ID, the_id=preparation_id)
        return None if row is None else _preparation_from(row)

    def preparations(self, job_id: int) -> list[Preparation]:
        return [_preparation_from(row) for row in self._rows(_OF_JOB, the_job=job_id)]

    def live_preparations(self, node_id: str | None = None) -> list[Preparation]:
        if node_id is None:
            found = self._rows(_ALL_LIVE)
        else:
            found = self._rows(_LIVE_OF_NODE, node=node_id)
        return [_preparation_from(row) for row in found]

    def prepared_elsewhere(self, node_id: str) -> set[int]:
        return {row.job_id for row in self._rows(_ELSEWHERE, node=node_id)}

    def unprepared_jobs(self) -> list[Job]:
        return [job_rows.job_from(row) for row in self._rows(_UNPREPARED)]


class PreparationWrites(PreparationReads):
    def insert_preparation(self, preparation: Preparation) -> None:
        self._run(_INSERT, **_row_of(preparation))

    def update_preparation(
        self, preparation_id: str, expect: frozenset[AttemptStatus], **changes: Any
    ) -> None:
        unknown = changes.keys() - CHANGES
        if unknown or not changes:
            raise TypeError(f"a preparation cannot change {', '.join(sorted(unknown))}")
        columns = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in changes.items()
        }
        statement = _guarded_update(frozenset(columns), expect)
        if not expect or not self._run(statement, the_id=preparation_id, **columns):
            raise errors.StaleWrite(preparation=preparation_id)


def _row_of(preparation: Preparation) -> dict[str, Any]:
    values = {column.key: getattr(preparation, column.key) for column in _columns}
    values["status"] = preparation.status.value
    values["stage"] = preparation.stage.value
    return values


def _preparation_from(row: Any) -> Preparation:
    values = {column.key: getattr(row, column.key) for column in _columns}
    values["status"] = AttemptStatus(row.status)
    values["stage"] = Stage(row.stage)
    return Preparation(**values)
