"""Who is told of everybody's jobs, whether it works, and what became of what was told."""

from __future__ import annotations

from dataclasses import replace

from runyard.domain import errors
from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import (
    TEST,
    Delivery,
    DeliveryFilter,
    DeliveryPage,
    NewWorkspaceTarget,
    Recipient,
    WorkspaceTarget,
)
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.notify import notices, outbox
from runyard.engine.notify.outbox import Outbox
from runyard.engine.parts import Parts
from runyard.stores.base import Reader, Transaction


class NotificationDesk:
    def __init__(self, parts: Parts, box: Outbox) -> None:
        self._parts = parts
        self._outbox = box

    def targets(self, actor: Actor) -> list[WorkspaceTarget]:
        actor.must_be_admin()
        with self._parts.store.read() as reader:
            return reader.notification_targets()

    def target(self, target_id: int, actor: Actor) -> WorkspaceTarget:
        actor.must_be_admin()
        with self._parts.store.read() as reader:
            return _find(reader, target_id)

    def add(self, target: NewWorkspaceTarget, actor: Actor) -> WorkspaceTarget:
        """Conflict when the name is taken."""
        actor.must_be_admin()
        now = self._parts.clock()

        def work(tx: Transaction) -> WorkspaceTarget:
            _refuse_taken(tx, target.name)
            return tx.insert_notification_target(target, actor.name, now)

        made = self._parts.store.write(work, exclusive=True)
        self._outbox.forget_targets()
        server_log.of().info("notification target {} added by {}", made.name, actor.name)
        return made

    def change(self, target_id: int, target: NewWorkspaceTarget, actor: Actor) -> WorkspaceTarget:
        actor.must_be_admin()

        def work(tx: Transaction) -> WorkspaceTarget:
            _find(tx, target_id)
            _refuse_taken(tx, target.name, target_id)
            tx.update_notification_target(target_id, target)
            return _find(tx, target_id)

        changed = self._parts.store.write(work, exclusive=True)
        self._outbox.forget_targets()
        server_log.of().info("notification target {} changed by {}", changed.name, actor.name)
        return changed

    def remove(self, target_id: int, actor: Actor) -> None:
        """What still waits for it is given up."""
        actor.must_be_admin()

        def work(tx: Transaction) -> WorkspaceTarget:
            found = _find(tx, target_id)
            tx.delete_notification_target(target_id)
            return found

        removed = self._parts.store.write(work)
        self._outbox.forget_targets()
        server_log.of().info("notification target {} removed by {}", removed.name, actor.name)

    def test(self, target_id: int, actor: Actor) -> Delivery:
        """Send something to a target that is kept, also to one that is switched off."""
        return self._send_test(outbox.of_workspace(self.target(target_id, actor)), actor)

    def test_unsaved(self, target: NotifyTarget, actor: Actor) -> Delivery:
        """The same for one that is not kept; whoever may submit a job could do it by a job."""
        actor.must_submit()
        return self._send_test(replace(outbox.of_job(target), name=actor.name), actor)

    def delivery(self, delivery_id: str) -> Delivery | None:
        with self._parts.store.read() as reader:
            return reader.delivery(delivery_id)

    def deliveries(
        self, chosen: DeliveryFilter, actor: Actor, limit: int, cursor: str | None
    ) -> DeliveryPage:
        """Of everything for admins, else of one's own jobs."""
        if actor.role != "admin":
            chosen = replace(chosen, owner=actor.name)
        with self._parts.store.read() as reader:
            return reader.deliveries(chosen, limit=limit, cursor=cursor)

    def _send_test(self, recipient: Recipient, actor: Actor) -> Delivery:
        body = notices.of_test(self._parts.clock(), actor.name)
        new = self._outbox.delivery(TEST, None, recipient, body)
        self._parts.store.write(lambda tx: tx.insert_deliveries([new]))
        self._outbox.wake()
        found = self.delivery(new.delivery_id)
        assert found is not None
        return found


def _find(reader: Reader, target_id: int) -> WorkspaceTarget:
    found = reader.notification_target(target_id)
    if found is None:
        raise errors.NotFound(f"There is no notification target {target_id}.", target=target_id)
    return found


def _refuse_taken(tx: Transaction, name: str, own_id: int | None = None) -> None:
    taken = tx.notification_target(name)
    if taken is not None and taken.id != own_id:
        raise errors.Conflict(f"There is a notification target {name} already.", name=name)
