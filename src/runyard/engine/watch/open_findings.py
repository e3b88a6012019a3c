"""Findings become alerts: opened once, told again when they get worse, closed when over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from runyard.domain.monitoring.alert import Alert, AlertFilter, AlertLevel, AlertStatus, NewAlert
from runyard.engine.watch.alerting import AlertDesk

AGAIN_S = 60.0  # an alert that stays is noted so often, not at every look
_GRAVITY = {AlertLevel.WARNING: 1, AlertLevel.ERROR: 2, AlertLevel.CRITICAL: 3}
_NOT_CLOSED = (AlertStatus.OPEN, AlertStatus.ACKNOWLEDGED)


@dataclass(slots=True)
class Open:
    """What is open now. `since` is by the wall clock, the other times by a monotonic one."""

    alert: NewAlert
    since: float
    seen_at: float
    told_at: float
    kept: bool = False  # stays open after the attempt's end, for a person to see


class OpenFindings:
    """Of one kind of subject each; used by one thread."""

    def __init__(self, desk: AlertDesk, codes: tuple[str, ...], clear_s: float) -> None:
        self._desk = desk
        self._codes = codes
        self._clear_s = clear_s
        self._open: dict[str, Open] = {}

    def load(self, now: float) -> None:
        """Alerts that an earlier server left open: found again soon, or closed. Those about which
        something was done stay for a person."""
        cursor: str | None = None
        while True:
            chosen = AlertFilter(statuses=_NOT_CLOSED, codes=self._codes)
            page = self._desk.list(chosen, 500, cursor)
            for alert in page.alerts:
                if not alert.actions_taken:
                    self._open[alert.key] = Open(_new(alert), alert.opened_at, now, now)
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    def found(self, alert: NewAlert, now: float, wall: float, *, kept: bool = False) -> bool:
        """Whether it is new."""
        known = self._open.get(alert.key)
        if known is None:
            self._open[alert.key] = Open(alert, wall, now, now, kept)
            self._desk.open(alert)
            return True
        worse = _GRAVITY[alert.level] > _GRAVITY[known.alert.level]
        # Stacks and log lines are taken once, when it is opened.
        evidence = {**known.alert.evidence, **alert.evidence}
        known.alert, known.seen_at = replace(alert, evidence=evidence, actions_taken=()), now
        if worse or now - known.told_at >= AGAIN_S:
            known.told_at = now
            self._desk.open(known.alert)
        return False

    def acted(self, key: str, action: dict[str, object]) -> None:
        """Something was done about it."""
        known = self._open.get(key)
        if known is not None:
            self._desk.open(replace(known.alert, actions_taken=(action,)))

    def still(self, key: str, now: float) -> None:
        """It cannot be looked at again yet, and nothing says that it is over."""
        if key in self._open:
            self._open[key].seen_at = now

    def is_open(self, key: str) -> bool:
        return key in self._open

    def of(self, prefix: str) -> list[Open]:
        return [one for key, one in self._open.items() if key.startswith(prefix)]

    def settle(self, now: float) -> None:
        """Close what was not found for a while."""
        for key, one in list(self._open.items()):
            if now - one.seen_at >= self._clear_s and not one.kept:
                self._close(key)

    def ended(self, living: Collection[str]) -> None:
        """Other attempts than these run no more: nothing is wrong with them now."""
        for key, one in list(self._open.items()):
            if one.alert.attempt_id is not None and one.alert.attempt_id not in living:
                if one.kept:
                    del self._open[key]
                else:
                    self._close(key)

    def worst(self, prefix: str) -> Open | None:
        return max(self.of(prefix), key=lambda one: _GRAVITY[one.alert.level], default=None)

    def _close(self, key: str) -> None:
        del self._open[key]
        self._desk.close(key)


def _new(alert: Alert) -> NewAlert:
    return NewAlert(
        key=alert.key,
        level=alert.level,
        code=alert.code,
        params=alert.params,
        job_id=alert.job_id,
        attempt_id=alert.attempt_id,
        node_id=alert.node_id,
        evidence=alert.evidence,
    )
