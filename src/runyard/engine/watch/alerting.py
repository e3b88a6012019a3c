"""Alerts: opened once for each trouble, seen by people, closed when it is over."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.domain import errors, events
from runyard.domain.events import Event
from runyard.domain.monitoring.alert import (
    Alert,
    AlertFilter,
    AlertLevel,
    AlertPage,
    AlertStatus,
    NewAlert,
)
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.parts import Parts
from runyard.stores.base import Reader, Transaction

_NOT_CLOSED = frozenset({AlertStatus.OPEN, AlertStatus.ACKNOWLEDGED})
_LOG_LEVELS = {
    AlertLevel.WARNING: "WARNING",
    AlertLevel.ERROR: "ERROR",
    AlertLevel.CRITICAL: "CRITICAL",
}


def open_in(tx: Transaction, found: NewAlert, now: float, actor: str) -> Alert:
    """Open it, or find it open, inside a transaction; only what is new makes an event."""
    alert = tx.put_alert(found, now)
    if alert.times == 1:
        tx.append_event(alert.job_id, _event(events.ALERT_OPENED, alert, now, actor))
    return alert


def close_in(tx: Transaction, key: str, now: float, actor: str) -> Alert | None:
    """The alert of this key if it was not closed before."""
    alert = tx.alert_by_key(key)
    if alert is None or not _close(tx, alert, now, actor):
        return None
    return tx.alert(alert.id)


def close_of_job_in(
    tx: Transaction, job_id: int, codes: Sequence[str], now: float, actor: str
) -> list[Alert]:
    """What is over because the job has ended."""
    closed = tx.close_alerts_of_job(job_id, codes, now)
    for alert in closed:
        tx.append_event(job_id, _event(events.ALERT_CLOSED, alert, now, actor))
    return closed


def tell(alert: Alert) -> None:
    """A line in the log for an alert that was just opened; repeats are silent."""
    if alert.times == 1:
        log = server_log.of(alert.job_ref or "-", alert.attempt_id or "-")
        params = dict(alert.params)
        log.log(_LOG_LEVELS[alert.level], "alert opened: {} {}", alert.code, params)


class AlertDesk:
    """`open` and `close` are for the parts of the engine, the rest is for people."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def open(self, found: NewAlert, actor: str = "monitor") -> Alert:
        now = self._parts.clock()
        alert = self._parts.store.write(lambda tx: open_in(tx, found, now, actor))
        tell(alert)
        return alert

    def close(self, key: str, actor: str = "monitor") -> Alert | None:
        """None when no alert of this key is open."""
        now = self._parts.clock()
        with self._parts.store.read() as reader:
            if reader.alert_by_key(key) is None:
                return None
        return self._parts.store.write(lambda tx: close_in(tx, key, now, actor))

    def get(self, alert_id: int) -> Alert:
        with self._parts.store.read() as reader:
            return _find(reader, alert_id)

    def list(self, chosen: AlertFilter, limit: int, cursor: str | None) -> AlertPage:
        with self._parts.store.read() as reader:
            return reader.alerts(chosen, limit=limit, cursor=cursor)

    def acknowledge(self, alert_id: int, actor: Actor) -> Alert:
        """A person has seen it. Again is no error; Conflict once it is closed."""
        now = self._parts.clock()

        def work(tx: Transaction) -> Alert:
            alert = _find(tx, alert_id)
            _must_own(tx, alert, actor)
            expect, to = frozenset({AlertStatus.OPEN}), AlertStatus.ACKNOWLEDGED
            if alert.status is AlertStatus.CLOSED:
                raise errors.Conflict(f"Alert {alert_id} is closed.", alert=alert_id)
            if tx.set_alert_status(alert_id, expect, to, now, actor.name):
                told = _event(events.ALERT_ACKNOWLEDGED, alert, now, actor.name)
                tx.append_event(alert.job_id, told)
            return _find(tx, alert_id)

        return self._parts.store.write(work)

    def close_by_person(self, alert_id: int, actor: Actor) -> Alert:
        """Closing again is no error. A trouble that is still there opens another."""
        now = self._parts.clock()

        def work(tx: Transaction) -> Alert:
            alert = _find(tx, alert_id)
            _must_own(tx, alert, actor)
            _close(tx, alert, now, actor.name)
            return _find(tx, alert_id)

        return self._parts.store.write(work)


def _close(tx: Transaction, alert: Alert, now: float, actor: str) -> bool:
    closed = tx.set_alert_status(alert.id, _NOT_CLOSED, AlertStatus.CLOSED, now, actor)
    if closed:
        tx.append_event(alert.job_id, _event(events.ALERT_CLOSED, alert, now, actor))
    return closed


def _find(reader: Reader, alert_id: int) -> Alert:
    alert = reader.alert(alert_id)
    if alert is None:
        raise errors.NotFound(f"There is no alert {alert_id}.", alert=alert_id)
    return alert


def _must_own(tx: Transaction, alert: Alert, actor: Actor) -> None:
    """The owner of its job or an admin; what concerns no job is for admins."""
    job = None if alert.job_id is None else tx.job(alert.job_id)
    if job is None:
        actor.must_be_admin()
    else:
        actor.must_own(job)


def _event(code: str, alert: Alert, now: float, actor: str) -> Event:
    params = {"alert": alert.id, "code": alert.code, "level": alert.level.value}
    return Event(code, now, actor, alert.attempt_id, params)
