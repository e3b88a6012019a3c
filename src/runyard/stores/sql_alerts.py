"""Alerts: one row that is not closed for each key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, insert, literal_column, select, update

from runyard.domain.monitoring.alert import (
    Alert,
    AlertFilter,
    AlertLevel,
    AlertPage,
    AlertStatus,
    NewAlert,
)
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.sql_job_list import last_id
from runyard.stores.tables import training_jobs
from runyard.stores.watch_tables import alerts

_alerts = alerts.c
_NOT_CLOSED = _alerts.status != literal_column("'closed'")
_WITH_REF = select(*alerts.c, training_jobs.c.uuid.label("job_ref")).select_from(
    alerts.outerjoin(training_jobs, _alerts.job_id == training_jobs.c.id)
)
_BY_ID = Statement(_WITH_REF.where(_alerts.id == bindparam("the_id")))
_BY_KEY = Statement(_WITH_REF.where(_alerts.key == bindparam("the_key"), _NOT_CLOSED))
_OPEN_OF_JOB = Statement(
    _WITH_REF.where(_alerts.job_id == bindparam("the_job"), _NOT_CLOSED).order_by(_alerts.id)
)
_INSERT = Statement(
    insert(alerts).inline(), [c.key for c in _alerts if c.key != "id"], gives=_alerts.id
)
_FOUND_AGAIN = Statement(
    update(alerts)
    .where(_alerts.id == bindparam("the_id"), _NOT_CLOSED)
    .values(times=_alerts.times + literal_column("1")),
    ("level", "params", "seen_at", "evidence", "actions_taken"),
)


@cache
def _guarded_update(columns: frozenset[str], expect: frozenset[AlertStatus]) -> Statement:
    words: list[ColumnElement[str]] = [
        literal_column(f"'{status.value}'") for status in sorted(expect)
    ]
    guarded = update(alerts).where(_alerts.id == bindparam("the_id"), _alerts.status.in_(words))
    return Statement(guarded, sorted(columns))


class AlertReads(Session):
    def alert(self, alert_id: int) -> Alert | None:
        row = self._row(_BY_ID, the_id=alert_id)
        return None if row is None else _alert_from(row)

    def alert_by_key(self, key: str) -> Alert | None:
        row = self._row(_BY_KEY, the_key=key)
        return None if row is None else _alert_from(row)

    def alerts(
        self, chosen: AlertFilter, *, limit: int = 50, cursor: str | None = None
    ) -> AlertPage:
        conditions = _conditions(chosen)
        page = _WITH_REF.where(*conditions)
        if cursor is not None:
            page = page.where(_alerts.id < last_id(cursor))
        found = self._rows_once(Statement(page.order_by(_alerts.id.desc()).limit(limit + 1)))
        count = select(func.count().label("many")).select_from(alerts).where(*conditions)
        total = self._rows_once(Statement(count))[0].many
        shown = tuple(_alert_from(row) for row in found[:limit])
        more = len(found) > limit and shown
        return AlertPage(shown, str(shown[-1].id) if more else None, total)


class AlertWrites(AlertReads):
    def put_alert(self, found: NewAlert, at: float) -> Alert:
        known = self.alert_by_key(found.key)
        if known is not None and self._found_again(known, found, at):
            return self._kept(known.id)
        opened = self._kept(self._insert(_INSERT, **_columns_of(found, at)))
        self._opened.append(opened)
        return opened

    def _found_again(self, known: Alert, found: NewAlert, at: float) -> bool:
        """False if somebody closed it meanwhile."""
        changed = self._run(
            _FOUND_AGAIN,
            the_id=known.id,
            level=found.level.value,
            params=found.params,
            seen_at=at,
            evidence=found.evidence,
            actions_taken=[*known.actions_taken, *found.actions_taken],
        )
        return changed > 0

    def set_alert_status(
        self,
        alert_id: int,
        expect: frozenset[AlertStatus],
        to: AlertStatus,
        at: float,
        by: str,
    ) -> bool:
        changes: dict[str, Any] = {"status": to.value}
        if to is AlertStatus.CLOSED:
            changes["closed_at"] = at
        elif to is AlertStatus.ACKNOWLEDGED:
            changes["acknowledged_by"] = by
        statement = _guarded_update(frozenset(changes), expect)
        return bool(expect) and self._run(statement, the_id=alert_id, **changes) > 0

    def close_alerts_of_job(self, job_id: int, codes: Sequence[str], at: float) -> list[Alert]:
        waiting = [row for row in self._rows(_OPEN_OF_JOB, the_job=job_id) if row.code in codes]
        expect = frozenset({AlertStatus.OPEN, AlertStatus.ACKNOWLEDGED})
        for row in waiting:
            self.set_alert_status(row.id, expect, AlertStatus.CLOSED, at, "")
        return [self._kept(row.id) for row in waiting]

    def _kept(self, alert_id: int) -> Alert:
        found = self.alert(alert_id)
        assert found is not None  # written in this very transaction
        return found


def _conditions(chosen: AlertFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    words: tuple[tuple[ColumnElement[Any], tuple[str, ...]], ...] = (
        (_alerts.status, tuple(status.value for status in chosen.statuses)),
        (_alerts.level, tuple(level.value for level in chosen.levels)),
        (_alerts.code, chosen.codes),
    )
    for column, wanted in words:
        if wanted:
            conditions.append(column.in_(wanted))
    if chosen.job_id is not None:
        conditions.append(_alerts.job_id == chosen.job_id)
    return conditions


def _columns_of(found: NewAlert, at: float) -> dict[str, Any]:
    return {
        "key": found.key,
        "level": found.level.value,
        "code": found.code,
        "params": found.params,
        "job_id": found.job_id,
        "attempt_id": found.attempt_id,
        "node_id": found.node_id,
        "status": AlertStatus.OPEN.value,
        "times": 1,
        "opened_at": at,
        "seen_at": at,
        "closed_at": None,
        "acknowledged_by": None,
        "evidence": found.evidence,
        "actions_taken": list(found.actions_taken),
    }


def _alert_from(row: Any) -> Alert:
    return Alert(
        id=row.id,
        key=row.key,
        level=AlertLevel(row.level),
        code=row.code,
        params=row.params,
        job_id=row.job_id,
        job_ref=row.job_ref,
        attempt_id=row.attempt_id,
        node_id=row.node_id,
        status=AlertStatus(row.status),
        times=row.times,
        opened_at=row.opened_at,
        seen_at=row.seen_at,
        closed_at=row.closed_at,
        acknowledged_by=row.acknowledged_by,
        evidence=row.evidence,
        actions_taken=tuple(row.actions_taken),
    )
