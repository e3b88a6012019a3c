"""The part of the store port that keeps alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runyard.domain.monitoring.alert import Alert, AlertFilter, AlertPage, AlertStatus, NewAlert


class AlertReader(Protocol):
    def alert(self, alert_id: int) -> Alert | None: ...
    def alert_by_key(self, key: str) -> Alert | None:
        """The one of this key that is not closed."""
        ...

    def alerts(
        self, chosen: AlertFilter, *, limit: int = 50, cursor: str | None = None
    ) -> AlertPage: ...


class AlertTransaction(AlertReader, Protocol):
    def put_alert(self, found: NewAlert, at: float) -> Alert:
        """A new open alert (`times` 1), or the one of this key that is not closed: found once more
        (`times` grows) with the newest level, params and evidence, further actions taken, and its
        status as it was."""
        ...

    def set_alert_status(
        self,
        alert_id: int,
        expect: frozenset[AlertStatus],
        to: AlertStatus,
        at: float,
        by: str,
    ) -> bool:
        """False when its status is none of those expected. `by` is kept for acknowledged."""
        ...

    def close_alerts_of_job(self, job_id: int, codes: Sequence[str], at: float) -> list[Alert]:
        """Those that were not closed, as they are now."""
        ...
