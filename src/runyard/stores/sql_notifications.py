"""Who is told (few rows), and the outbox: what has to be sent, claimed by one server at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    ColumnElement,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from runyard.domain.job import NotifyTarget
from runyard.domain.monitoring.alert import Alert
from runyard.domain.notifications import (
    Delivery,
    DeliveryFilter,
    DeliveryPage,
    DeliveryStatus,
    NewDelivery,
    NewWorkspaceTarget,
    Recipient,
    WorkspaceTarget,
)
from runyard.domain.reasons import Reason
from runyard.stores import json_text
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.sql_job_list import last_id
from runyard.stores.tables import training_jobs
from runyard.stores.watch_tables import alerts, notification_targets, outbox

_TOLD = "notified"  # the action that an alert remembers

_targets = notification_targets.c
_WRITTEN = ("name", "type", "url", "secret", "events", "enabled")
_OF_TARGET = _targets.id == bindparam("the_id")
_TARGETS = Statement(select(notification_targets).order_by(_targets.name))
_TARGET_BY_ID = Statement(select(notification_targets).where(_OF_TARGET))
_TARGET_BY_NAME = Statement(
    select(notification_targets).where(_targets.name == bindparam("the_name"))
)
_INSERT_TARGET = Statement(
    insert(notification_targets).inline(),
    [c.key for c in _targets if c.key != "id"],
    gives=_targets.id,
)
_UPDATE_TARGET = Statement(update(notification_targets).where(_OF_TARGET), _WRITTEN)
_DELETE_TARGET = Statement(delete(notification_targets).where(_OF_TARGET))

_out = outbox.c
_WITH_REF = select(*outbox.c, training_jobs.c.uuid.label("job_ref")).select_from(
    outbox.outerjoin(training_jobs, _out.job_id == training_jobs.c.id)
)
_UNFINISHED = _out.status.in_([literal_column("'waiting'"), literal_column("'sending'")])
_BY_DELIVERY_ID = Statement(_WITH_REF.where(_out.delivery_id == bindparam("the_delivery")))
_DUE_NOW = _WITH_REF.where(_UNFINISHED, _out.due_at <= bindparam("now", type_=_out.due_at.type))
_IN_ORDER = (_out.due_at, _out.id)
_DUE = Statement(_DUE_NOW.order_by(*_IN_ORDER).limit(bindparam("many")))
_DUE_AFTER = Statement(
    _DUE_NOW.where(
        or_(
            _out.due_at > bindparam("last_due", type_=_out.due_at.type),
            and_(
                _out.due_at == bindparam("last_due", type_=_out.due_at.type),
                _out.id > bindparam("last_id", type_=_out.id.type),
            ),
        )
    )
    .order_by(*_IN_ORDER)
    .limit(bindparam("many"))
)
_NEXT_DUE = Statement(select(func.min(_out.due_at).label("due_at")).where(_UNFINISHED))
_INSERT = Statement(insert(outbox).inline(), [c.key for c in _out if c.key != "id"], gives=_out.id)
_CLAIM = Statement(
    update(outbox)
    .where(_out.id == bindparam("the_id"), _UNFINISHED, _out.tries == bindparam("the_tries"))
    .values(tries=_out.tries + literal_column("1")),
    ("status", "claimed_by", "due_at"),
)
_FINISH = Statement(
    update(outbox).where(
        _out.id == bindparam("the_id"),
        _out.status == literal_column("'sending'"),
        _out.claimed_by == bindparam("the_claimer"),
        _out.tries == bindparam("the_tries"),
    ),
    ("status", "due_at", "sent_at", "last_error", "claimed_by"),
)
_RELEASE = Statement(
    update(outbox).where(
        _out.status == literal_column("'sending'"), _out.claimed_by == bindparam("the_claimer")
    ),
    ("status", "due_at", "claimed_by"),
)
_FORGET = Statement(
    delete(outbox).where(
        _out.status.in_([literal_column("'sent'"), literal_column("'given_up'")]),
        _out.created_at < bindparam("before", type_=_out.created_at.type),
    )
)
# Alerts of a job, or of none, are few and found by an index.
_OF_KEY = (
    alerts.c.key == bindparam("the_key"),
    alerts.c.id != bindparam("the_id"),
    alerts.c.opened_at >= bindparam("since", type_=alerts.c.opened_at.type),
)
_EARLIER_OF_JOB = Statement(
    select(alerts.c.actions_taken).where(alerts.c.job_id == bindparam("the_job"), *_OF_KEY)
)
_EARLIER = Statement(select(alerts.c.actions_taken).where(alerts.c.job_id.is_(None), *_OF_KEY))
_ACTIONS = Statement(select(alerts.c.actions_taken).where(alerts.c.id == bindparam("the_id")))
_SET_ACTIONS = Statement(
    update(alerts).where(alerts.c.id == bindparam("the_id")), ("actions_taken",)
)


class NotificationReads(Session):
    def notification_targets(self) -> list[WorkspaceTarget]:
        return [_target_from(row) for row in self._rows(_TARGETS)]

    def notification_target(self, ref: int | str) -> WorkspaceTarget | None:
        if isinstance(ref, int):
            row = self._row(_TARGET_BY_ID, the_id=ref)
        else:
            row = self._row(_TARGET_BY_NAME, the_name=ref)
        return None if row is None else _target_from(row)

    def delivery(self, delivery_id: str) -> Delivery | None:
        row = self._row(_BY_DELIVERY_ID, the_delivery=delivery_id)
        return None if row is None else _delivery_from(row)

    def deliveries(
        self, chosen: DeliveryFilter, *, limit: int = 50, cursor: str | None = None
    ) -> DeliveryPage:
        conditions = _conditions(chosen)
        page = _WITH_REF.where(*conditions)
        if cursor is not None:
            page = page.where(_out.id < last_id(cursor))
        found = self._rows_once(Statement(page.order_by(_out.id.desc()).limit(limit + 1)))
        counted = outbox.outerjoin(training_jobs, _out.job_id == training_jobs.c.id)
        count = select(func.count().label("many")).select_from(counted).where(*conditions)
        total = self._rows_once(Statement(count))[0].many
        shown = tuple(_delivery_from(row) for row in found[:limit])
        more = len(found) > limit and shown
        return DeliveryPage(shown, str(shown[-1].id) if more else None, total)

    def due_deliveries(
        self, now: float, limit: int, after: Delivery | None = None
    ) -> list[Delivery]:
        if after is None:
            found = self._rows(_DUE, now=now, many=limit)
        else:
            place = {"last_due": after.due_at, "last_id": after.id}
            found = self._rows(_DUE_AFTER, now=now, many=limit, **place)
        return [_delivery_from(row) for row in found]

    def next_delivery_due(self) -> float | None:
        row = self._row(_NEXT_DUE)
        return None if row is None else row.due_at

    def alert_told_since(self, alert: Alert, since: float) -> bool:
        given: dict[str, Any] = {"the_key": alert.key, "the_id": alert.id, "since": since}
        if alert.job_id is None:
            earlier = self._rows(_EARLIER, **given)
        else:
            earlier = self._rows(_EARLIER_OF_JOB, the_job=alert.job_id, **given)
        return any(one.get("action") == _TOLD for row in earlier for one in row.actions_taken)


class NotificationWrites(NotificationReads):
    def insert_notification_target(
        self, target: NewWorkspaceTarget, by: str, at: float
    ) -> WorkspaceTarget:
        columns = _columns_of_target(target)
        target_id = self._insert(_INSERT_TARGET, **columns, created_by=by, created_at=at)
        found = self.notification_target(target_id)
        assert found is not None  # written in this very transaction
        return found

    def update_notification_target(self, target_id: int, target: NewWorkspaceTarget) -> bool:
        return self._run(_UPDATE_TARGET, the_id=target_id, **_columns_of_target(target)) > 0

    def delete_notification_target(self, target_id: int) -> bool:
        return self._run(_DELETE_TARGET, the_id=target_id) > 0

    def insert_deliveries(self, deliveries: Sequence[NewDelivery]) -> None:
        if deliveries:
            self._insert_many(_INSERT, [_columns_of(new) for new in deliveries])

    def claim_delivery(self, found: Delivery, by: str, until: float) -> bool:
        changed = self._run(
            _CLAIM,
            the_id=found.id,
            the_tries=found.tries,
            status=DeliveryStatus.SENDING.value,
            claimed_by=by,
            due_at=until,
        )
        return changed > 0

    def finish_delivery(
        self,
        claimed: Delivery,
        status: DeliveryStatus,
        at: float,
        *,
        due_at: float | None = None,
        error: Reason | None = None,
    ) -> bool:
        changed = self._run(
            _FINISH,
            the_id=claimed.id,
            the_claimer=claimed.claimed_by,
            the_tries=claimed.tries,
            status=status.value,
            due_at=at if due_at is None else due_at,
            sent_at=at if status is DeliveryStatus.SENT else None,
            last_error=None if error is None else _error_text(error),
            claimed_by=None,
        )
        return changed > 0

    def release_deliveries(self, claimed_by: str, now: float) -> int:
        waiting = DeliveryStatus.WAITING.value
        return self._run(
            _RELEASE, the_claimer=claimed_by, status=waiting, due_at=now, claimed_by=None
        )

    def forget_deliveries(self, before: float) -> int:
        return self._run(_FORGET, before=before)

    def note_alert_told(self, alert_id: int, at: float) -> None:
        row = self._row(_ACTIONS, the_id=alert_id)
        if row is not None:
            taken = [*row.actions_taken, {"action": _TOLD, "at": at}]
            self._run(_SET_ACTIONS, the_id=alert_id, actions_taken=taken)


def _conditions(chosen: DeliveryFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if chosen.statuses:
        conditions.append(_out.status.in_([status.value for status in chosen.statuses]))
    if chosen.events:
        conditions.append(_out.event.in_(chosen.events))
    if chosen.job_id is not None:
        conditions.append(_out.job_id == chosen.job_id)
    if chosen.owner is not None:
        conditions.append(training_jobs.c.owner == chosen.owner)
    return conditions


def _columns_of_target(target: NewWorkspaceTarget) -> dict[str, Any]:
    where = target.where
    return {
        "name": target.name,
        "type": where.type,
        "url": where.url,
        "secret": where.secret,
        "events": list(where.events),
        "enabled": target.enabled,
    }


def _target_from(row: Any) -> WorkspaceTarget:
    return WorkspaceTarget(
        id=row.id,
        name=row.name,
        where=NotifyTarget(row.type, row.url, row.secret, tuple(row.events)),
        enabled=row.enabled,
        created_by=row.created_by,
        created_at=row.created_at,
    )


def _columns_of(new: NewDelivery) -> dict[str, Any]:
    return {
        "delivery_id": new.delivery_id,
        "event": new.event,
        "job_id": new.job_id,
        "target": asdict(new.recipient),
        "body": new.body,
        "status": DeliveryStatus.WAITING.value,
        "tries": 0,
        "due_at": new.created_at,
        "claimed_by": None,
        "created_at": new.created_at,
        "sent_at": None,
        "last_error": None,
    }


def _delivery_from(row: Any) -> Delivery:
    return Delivery(
        id=row.id,
        delivery_id=row.delivery_id,
        event=row.event,
        job_id=row.job_id,
        job_ref=row.job_ref,
        recipient=Recipient(**row.target),
        body=row.body,
        status=DeliveryStatus(row.status),
        tries=row.tries,
        due_at=row.due_at,
        claimed_by=row.claimed_by,
        created_at=row.created_at,
        sent_at=row.sent_at,
        last_error=None if row.last_error is None else Reason(**json_text.decode(row.last_error)),
    )


def _error_text(error: Reason) -> str:
    return json_text.encode({"code": error.code, "params": dict(error.params)})
