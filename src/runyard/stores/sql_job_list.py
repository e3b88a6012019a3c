"""Lists of jobs: filters, pages, totals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select

from runyard.domain import errors
from runyard.domain.job import Job
from runyard.domain.states import JobStatus
from runyard.stores import job_rows
from runyard.stores.base import JobFilter, JobPage
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.sql_jobs import some_jobs_by_id
from runyard.stores.tables import job_labels, training_jobs

_jobs = training_jobs.c
_ORDERS: dict[str, ColumnElement[Any]] = {
    "submitted": _jobs.id,
    "name": func.lower(_jobs.name),
    "status": _jobs.status,
    "started": _jobs.started_at,
    "ended": _jobs.completed_at,
    "progress": _jobs.progress,
    "owner": _jobs.owner,
}


class JobListReads(Session):
    def jobs(
        self,
        chosen: JobFilter,
        *,
        limit: int = 50,
        cursor: str | None = None,
        order: str = "-submitted",
    ) -> JobPage:
        self._driver.before_search()
        conditions = self._conditions(chosen)
        before = None if cursor is None else last_id(cursor)
        if order != "-submitted":
            return self._page_in_order(conditions, limit, before or 0, order)
        if chosen.text:
            return self._page_by_text(conditions, limit, before)
        count = select(func.count().label("many")).select_from(training_jobs).where(*conditions)
        page = select(training_jobs).where(*conditions)
        if before is not None:
            page = page.where(_jobs.id < before)
        found = self._rows_once(Statement(page.order_by(_jobs.id.desc()).limit(limit + 1)))
        total = self._rows_once(Statement(count))[0].many
        return _page([job_rows.job_from(row) for row in found[:limit]], len(found) > limit, total)

    def count_jobs(self, chosen: JobFilter) -> dict[JobStatus, int]:
        self._driver.before_search()
        counted = (
            select(_jobs.status, func.count().label("many"))
            .where(*self._conditions(replace(chosen, statuses=())))
            .group_by(_jobs.status)
        )
        return {JobStatus(row.status): row.many for row in self._rows_once(Statement(counted))}

    def _page_in_order(
        self, conditions: list[ColumnElement[bool]], limit: int, skipped: int, order: str
    ) -> JobPage:
        """In an order that changes while one turns pages, a cursor can only be a place in it."""
        column = _ORDERS[order.removeprefix("-")]
        down = order.startswith("-")
        first = column.desc().nulls_last() if down else column.asc().nulls_last()
        page = select(training_jobs).where(*conditions)
        page = page.order_by(first, _jobs.id.desc()).limit(limit + 1).offset(skipped)
        found = self._rows_once(Statement(page))
        count = select(func.count().label("many")).select_from(training_jobs).where(*conditions)
        total = self._rows_once(Statement(count))[0].many
        jobs = tuple(job_rows.job_from(row) for row in found[:limit])
        return JobPage(jobs, str(skipped + limit) if len(found) > limit else None, total)

    def _page_by_text(
        self, conditions: list[ColumnElement[bool]], limit: int, before: int | None
    ) -> JobPage:
        """Looking into texts is the expensive part, so it is done once for page and total."""
        matching = select(_jobs.id).where(*conditions)
        ids = sorted((row.id for row in self._rows_once(Statement(matching))), reverse=True)
        following = ids if before is None else [job_id for job_id in ids if job_id < before]
        found = self._rows_by_id(some_jobs_by_id, following[:limit])
        jobs = sorted((job_rows.job_from(row) for row in found), key=lambda job: -job.id)
        return _page(jobs, len(following) > limit, len(ids))

    def _conditions(self, chosen: JobFilter) -> list[ColumnElement[bool]]:
        conditions = _exact_conditions(chosen)
        if chosen.text:
            # SQLite's LIKE does not tell case apart, and lower() would cost more than the match.
            word = "like" if self._statements.dialect.name == "sqlite" else "ilike"
            pattern = f"%{_escaped(chosen.text)}%"
            texts = (_jobs.name, _jobs.description, _jobs.uuid)
            conditions.append(or_(*(getattr(text, word)(pattern, escape="!") for text in texts)))
        return conditions


def _page(jobs: list[Job], more: bool, total: int) -> JobPage:
    return JobPage(tuple(jobs), str(jobs[-1].id) if more and jobs else None, total)


def _escaped(text: str) -> str:
    for sign in "!%_":
        text = text.replace(sign, "!" + sign)
    return text


def last_id(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise errors.BadRequest("The cursor is not one that was given out.", cursor=cursor[:40])
    return int(cursor)


def _exact_conditions(chosen: JobFilter) -> list[ColumnElement[bool]]:
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
    if chosen.ended_since is not None:
        conditions.append(_jobs.completed_at >= chosen.ended_since)
    for name, value in chosen.labels.items():
        labelled = select(job_labels.c.job_id).where(
            job_labels.c.name == name, job_labels.c.value == value
        )
        conditions.append(_jobs.id.in_(labelled))
    return conditions
