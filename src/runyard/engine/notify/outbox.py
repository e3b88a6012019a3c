"""What has to be told is written in the transaction of the end or the alert it tells of, whichever
part of the engine made it: a crash right after loses nothing, and nothing is told that was undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt, Job, NotifyTarget
from runyard.domain.monitoring.alert import Alert
from runyard.domain.notifications import (
    ALERT,
    REPAIRED,
    NewDelivery,
    Recipient,
    WorkspaceTarget,
)
from runyard.engine import server_log
from runyard.engine.notify import notices
from runyard.engine.parts import Parts
from runyard.settings import Settings
from runyard.stores.base import Reader, Transaction
from runyard.stores.base_notifications import EndedJob, Happened

_COMMITTED_WITHIN_S = 5.0


class Outbox:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._url = _public_url(parts.settings)
        self._known: Sequence[WorkspaceTarget] | None = None
        self._written_at = float("-inf")
        # Whoever sends is told here that there is something to send.
        self.wake: Callable[[], None] = lambda: None

    def note(self, tx: Transaction, happened: Happened) -> None:
        """Called by the store inside each transaction that ended jobs or opened alerts."""
        workspace = self._workspace(tx)
        told: list[NewDelivery] = []
        try:
            for ended in happened.ended:
                if ended.notifies or workspace:
                    told += self._end(tx, ended, workspace)
            for alert in happened.opened:
                told += self._alert(tx, alert, workspace)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # An end that cannot be told must still be recorded.
            server_log.of().opt(exception=error).error("a notification could not be written")
        self._put(tx, told)

    def repaired(self, tx: Transaction, job: Job) -> None:
        """A job that failed has completed by a plan of ours; called where that is recorded."""
        planned = [one for one in tx.attempts(job.id) if (one.plan or {}).get("changes")]
        attempt = planned[-1] if planned else _newest(tx, job)
        body = notices.of_repair(job, attempt, self._url, self._parts.clock())
        targets = _wanting(REPAIRED, job, self._workspace(tx))
        self._put(tx, self._deliveries(REPAIRED, job.id, targets, body))

    def heard(self, events: Sequence[StoredEvent]) -> None:  # noqa: ARG002
        """Something was committed, perhaps what we wrote just before."""
        if time.monotonic() - self._written_at < _COMMITTED_WITHIN_S:
            self.wake()

    def forget_targets(self) -> None:
        """The targets of the workspace were changed."""
        self._known = None

    def delivery(
        self, event: str, job_id: int | None, recipient: Recipient, body: Mapping[str, Any]
    ) -> NewDelivery:
        delivery_id = "dlv-" + self._parts.random(12).hex()
        whole = {"delivery": delivery_id, "event": event, **body}
        return NewDelivery(delivery_id, event, job_id, recipient, whole, self._parts.store.now())

    def _put(self, tx: Transaction, told: Sequence[NewDelivery]) -> None:
        if told:
            tx.insert_deliveries(told)
            self._written_at = time.monotonic()

    def _workspace(self, reader: Reader) -> Sequence[WorkspaceTarget]:
        """Those that are told of everybody's jobs. Another server of a shared store may have
        changed them, so there they are read each time."""
        found = None if self._parts.store.shared else self._known
        if found is None:
            found = tuple(one for one in reader.notification_targets() if one.enabled)
            self._known = found
        return found

    def _end(
        self, tx: Transaction, ended: EndedJob, workspace: Sequence[WorkspaceTarget]
    ) -> list[NewDelivery]:
        job = tx.job(ended.job_id)
        if job is None:
            return []
        event = job.status.value
        targets = _wanting(event, job, workspace)
        if not targets:
            return []
        body = notices.of_end(job, _newest(tx, job), self._url)
        return self._deliveries(event, job.id, targets, body)

    def _alert(
        self, tx: Transaction, alert: Alert, workspace: Sequence[WorkspaceTarget]
    ) -> list[NewDelivery]:
        job = None if alert.job_id is None else tx.job(alert.job_id)
        targets = _wanting(ALERT, job, workspace)
        if not targets:
            return []
        if tx.alert_told_since(alert, alert.opened_at - self._parts.settings.notify_quiet_s):
            return []
        tx.note_alert_told(alert.id, alert.opened_at)
        attempt = None if job is None else _newest(tx, job)
        body = notices.of_alert(alert, job, attempt, self._url)
        return self._deliveries(ALERT, alert.job_id, targets, body)

    def _deliveries(
        self,
        event: str,
        job_id: int | None,
        recipients: Iterable[Recipient],
        body: Mapping[str, Any],
    ) -> list[NewDelivery]:
        return [self.delivery(event, job_id, recipient, body) for recipient in recipients]


def _public_url(settings: Settings) -> str:
    """Where people see this server."""
    url = (settings.advertise_url or settings.url).rstrip("/")
    return url if url.endswith(settings.root_path) else url + settings.root_path


def _wanting(event: str, job: Job | None, workspace: Sequence[WorkspaceTarget]) -> list[Recipient]:
    """Each address once, however often it is named."""
    found: dict[tuple[str, str], Recipient] = {}
    for target in () if job is None else job.spec.notify:
        if event in target.events:
            found.setdefault((target.type, target.url), of_job(target))
    for shared in workspace:
        if event in shared.where.events:
            key = (shared.where.type, shared.where.url)
            found.setdefault(key, of_workspace(shared))
    return list(found.values())


def of_job(target: NotifyTarget) -> Recipient:
    return Recipient(target.type, url=target.url, secret=target.secret)


def of_workspace(target: WorkspaceTarget) -> Recipient:
    return Recipient(target.where.type, target.name, target.id)


def _newest(tx: Transaction, job: Job) -> Attempt | None:
    """The attempt that an end tells of: not one from before a person asked for another run."""
    found = tx.attempt(job.attempt_id()) if job.attempt_number else None
    return None if found is None or found.created_at < job.queued_at else found
