"""Lists of jobs: filters, pages, totals."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_, select

from runyard.domain import errors
from runyard.stores import rows
from runyard.stores.base import JobFilter, JobPage
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import job_labels, training_jobs

_jobs = training_jobs.c


class JobListReads(Session):
    def jobs(self, chosen: JobFilter, *, limit: int = 50, cursor: str | None = None) -> JobPage:
        conditions = _conditions(chosen)
        total = self._rows_once(
            Statement(
                select(func.count().label("many")).select_from(training_jobs).where(*conditions)
            )
        )[0].many
        page = select(training_jobs).where(*conditions)
        if cursor is not None:
            page = page.where(_jobs.id < _last_id(cursor))
        found = self._rows_once(Statement(page.order_by(_jobs.id.desc()).limit(limit + 1)))
        shown = tuple(rows.job_from(row) for row in found[:limit])
        more = str(shown[-1].id) if len(found) > limit and shown else None
        return JobPage(shown, more, total)


def _last_id(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise errors.BadRequest("The cursor is not one that was given out.", cursor=cursor[:40])
    return int(cursor)


def _conditions(chosen: JobFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    words: tuple[tuple[ColumnElement[Any], tuple[str, ...]], ...] = (
        (_jobs.status, tuple(status.value for status in chosen.statuses)),
        (_jobs.job_type, chosen.job_types),
        (_jobs.owner, chosen.owners),
    )
    for column, wanted in words:
        if len(wanted) == 1:
            conditions.append(column == wanted[0])
        elif wanted:
            conditions.append(column.in_(wanted))
    if chosen.array_id is not None:
        conditions.append(_jobs.array_id == chosen.array_id)
    if chosen.since is not None:
        conditions.append(_jobs.submitted_at >= chosen.since)
    for name, value in chosen.labels.items():
        labelled = select(job_labels.c.job_id).where(
            job_labels.c.job_id == _jobs.id, job_labels.c.name == name, job_labels.c.value == value
        )
        conditions.append(exists(labelled))
    if chosen.text:
        texts = (_jobs.name, _jobs.description, _jobs.uuid)
        conditions.append(or_(*(text.icontains(chosen.text, autoescape=True) for text in texts)))
    return conditions
