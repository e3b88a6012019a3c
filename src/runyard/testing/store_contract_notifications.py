"""What a store promises about those who are told, and about the outbox."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runyard.domain import events, states
from runyard.domain.events import Event
from runyard.domain.job import Job, NotifyTarget
from runyard.domain.monitoring.alert import AlertLevel, AlertStatus, NewAlert
from runyard.domain.notifications import (
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    NewDelivery,
    NewWorkspaceTarget,
    Recipient,
    WorkspaceTarget,
)
from runyard.domain.reasons import Reason
from runyard.domain.states import JobStatus
from runyard.stores.base import Store, Transaction
from runyard.stores.base_notifications import EndedJob, Happened
from runyard.testing.store_samples import START, submit_one

_HOOK = NotifyTarget("webhook", "https://hook.example/x", "s3cret", ("failed", "alert"))
_TEAM = NewWorkspaceTarget("team", _HOOK)
_TROUBLE = NewAlert("disk:node-1", AlertLevel.WARNING, "disk_full", node_id="node-1")


def _keep(store: Store, target: NewWorkspaceTarget = _TEAM) -> WorkspaceTarget:
    return store.write(lambda tx: tx.insert_notification_target(target, "anna", START))


def _new(name: str, at: float = START, job: Job | None = None) -> NewDelivery:
    to = Recipient("webhook", url="https://hook.example/x", secret="s3cret")
    body = {"delivery": name, "loss": float("inf")}
    return NewDelivery(name, "failed", job.id if job else None, to, body, at)


def _write(store: Store, *deliveries: NewDelivery) -> None:
    store.write(lambda tx: tx.insert_deliveries(deliveries))


def _found(store: Store, name: str) -> Delivery:
    with store.read() as reader:
        found = reader.delivery(name)
    assert found is not None
    return found


def _claimed(store: Store, name: str, by: str, until: float) -> Delivery:
    found = _found(store, name)
    assert store.write(lambda tx: tx.claim_delivery(found, by, until))
    return _found(store, name)


def _finish(store: Store, name: str, status: DeliveryStatus) -> None:
    claimed = _claimed(store, name, "node-1", START + 60)
    assert store.write(lambda tx: tx.finish_delivery(claimed, status, START + 1))


def _cancel(tx: Transaction, job: Job) -> None:
    event = Event(events.JOB_CANCELLED, START, "anna")
    tx.apply(states.move(job.id, JobStatus.PENDING, JobStatus.CANCELLED, event, ready=False))


class NotificationContract:
    def test_a_job_keeps_whom_it_tells(self, store: Store) -> None:
        job = submit_one(store, notify=(_HOOK, NotifyTarget("apprise", "slack://a/b/c")))
        with store.read() as reader:
            found = reader.job(job.id)
        assert found is not None
        assert found.spec.notify == job.spec.notify
        assert "s3cret" not in repr(found)

    def test_a_target_comes_back_exactly(self, store: Store) -> None:
        kept = _keep(store)
        assert kept == WorkspaceTarget(kept.id, "team", _HOOK, True, "anna", START)
        with store.read() as reader:
            assert reader.notification_target(kept.id) == kept
            assert reader.notification_target("team") == kept
            assert reader.notification_target("nobody") is None

    def test_targets_are_listed_by_name_changed_and_removed(self, store: Store) -> None:
        second = _keep(store, replace(_TEAM, name="b"))
        first = _keep(store, replace(_TEAM, name="a"))
        changed = NewWorkspaceTarget("c", NotifyTarget("feishu", "https://f.example/1"), False)
        assert store.write(lambda tx: tx.update_notification_target(second.id, changed))
        with store.read() as reader:
            assert [one.name for one in reader.notification_targets()] == ["a", "c"]
            found = reader.notification_target(second.id)
        assert found == replace(second, name="c", where=changed.where, enabled=False)
        assert store.write(lambda tx: tx.delete_notification_target(first.id))
        assert not store.write(lambda tx: tx.delete_notification_target(first.id))
        assert not store.write(lambda tx: tx.update_notification_target(first.id, changed))

    def test_a_delivery_comes_back_exactly(self, store: Store) -> None:
        job = submit_one(store)
        new = _new("dlv-1", job=job)
        _write(store, new)
        found = _found(store, "dlv-1")
        assert found == Delivery(
            id=found.id,
            delivery_id="dlv-1",
            event="failed",
            job_id=job.id,
            job_ref=job.ref,
            recipient=new.recipient,
            body=new.body,
            status=DeliveryStatus.WAITING,
            tries=0,
            due_at=START,
            claimed_by=None,
            created_at=START,
            sent_at=None,
            last_error=None,
        )

    def test_the_longest_due_come_first_page_by_page(self, store: Store) -> None:
        _write(store, *(_new(f"dlv-{n}", START + n // 2) for n in (3, 1, 0, 2, 8)))
        with store.read() as reader:
            first = reader.due_deliveries(START + 1, 2)
            rest = reader.due_deliveries(START + 1, 10, first[-1])
            assert reader.next_delivery_due() == START
        assert [one.delivery_id for one in (*first, *rest)] == ["dlv-1", "dlv-0", "dlv-3", "dlv-2"]

    def test_a_delivery_is_claimed_by_one(self, store: Store) -> None:
        _write(store, _new("dlv-1"))
        seen = _found(store, "dlv-1")
        assert store.write(lambda tx: tx.claim_delivery(seen, "node-1", START + 60))
        assert not store.write(lambda tx: tx.claim_delivery(seen, "node-2", START + 60))
        claimed = _found(store, "dlv-1")
        assert (claimed.status, claimed.claimed_by) == (DeliveryStatus.SENDING, "node-1")
        assert (claimed.tries, claimed.due_at) == (1, START + 60)
        with store.read() as reader:
            assert reader.due_deliveries(START + 59, 10) == []
            assert reader.next_delivery_due() == START + 60

    def test_the_claim_of_a_dead_server_is_taken_over(self, store: Store) -> None:
        _write(store, _new("dlv-1"))
        dead = _claimed(store, "dlv-1", "node-1", START + 60)
        with store.read() as reader:
            [due] = reader.due_deliveries(START + 60, 10)
        assert store.write(lambda tx: tx.claim_delivery(due, "node-2", START + 120))
        sent = DeliveryStatus.SENT
        assert not store.write(lambda tx: tx.finish_delivery(dead, sent, START + 61))
        assert store.write(
            lambda tx: tx.finish_delivery(
                replace(dead, claimed_by="node-2", tries=2), sent, START + 62
            )
        )
        found = _found(store, "dlv-1")
        assert (found.status, found.sent_at, found.claimed_by) == (sent, START + 62, None)

    def test_a_failed_try_waits_with_its_error(self, store: Store) -> None:
        _write(store, _new("dlv-1"))
        claimed = _claimed(store, "dlv-1", "node-1", START + 60)
        error = Reason("http_status", {"status": 500})
        store.write(
            lambda tx: tx.finish_delivery(
                claimed, DeliveryStatus.WAITING, START + 1, due_at=START + 6, error=error
            )
        )
        found = _found(store, "dlv-1")
        assert (found.status, found.due_at) == (DeliveryStatus.WAITING, START + 6)
        assert (found.last_error, found.tries, found.sent_at) == (error, 1, None)

    def test_a_restarted_server_gives_back_its_own_claims(self, store: Store) -> None:
        _write(store, _new("dlv-1"), _new("dlv-2"))
        _claimed(store, "dlv-1", "node-1", START + 60)
        _claimed(store, "dlv-2", "node-2", START + 60)
        assert store.write(lambda tx: tx.release_deliveries("node-1", START + 1)) == 1
        with store.read() as reader:
            [due] = reader.due_deliveries(START + 1, 10)
        assert (due.delivery_id, due.status) == ("dlv-1", DeliveryStatus.WAITING)

    def test_deliveries_are_listed_newest_first(self, store: Store) -> None:
        mine, yours = submit_one(store, owner="anna"), submit_one(store, owner="bob")
        _write(store, _new("dlv-1", job=mine), _new("dlv-2", job=yours), _new("dlv-3"))
        with store.read() as reader:
            page = reader.deliveries(DeliveryFilter(), limit=2)
            rest = reader.deliveries(DeliveryFilter(), limit=2, cursor=page.next_cursor)
            of_anna = reader.deliveries(DeliveryFilter(owner="anna"))
            of_yours = reader.deliveries(DeliveryFilter(job_id=yours.id))
            sent = reader.deliveries(DeliveryFilter((DeliveryStatus.SENT,), ("failed",)))
        assert [one.delivery_id for one in page.deliveries] == ["dlv-3", "dlv-2"]
        assert [one.delivery_id for one in rest.deliveries] == ["dlv-1"]
        assert (page.total, rest.next_cursor) == (3, None)
        assert [one.delivery_id for one in of_anna.deliveries] == ["dlv-1"]
        assert [one.delivery_id for one in of_yours.deliveries] == ["dlv-2"]
        assert sent.total == 0

    def test_what_is_done_is_forgotten_and_the_rest_stays(self, store: Store) -> None:
        _write(store, _new("dlv-1"), _new("dlv-2"), _new("dlv-3", START + 10))
        _finish(store, "dlv-1", DeliveryStatus.SENT)
        _finish(store, "dlv-3", DeliveryStatus.GIVEN_UP)
        assert store.write(lambda tx: tx.forget_deliveries(START + 5)) == 1
        with store.read() as reader:
            left = reader.deliveries(DeliveryFilter()).deliveries
        assert [one.delivery_id for one in left] == ["dlv-3", "dlv-2"]

    def test_a_deleted_job_leaves_what_has_to_be_told_of_it(self, store: Store) -> None:
        job = submit_one(store)
        _write(store, _new("dlv-1", job=job))
        store.write(lambda tx: tx.delete_job(job.id))
        found = _found(store, "dlv-1")
        assert (found.job_id, found.job_ref) == (None, None)

    def test_an_alert_remembers_that_it_was_told(self, store: Store) -> None:
        closed, any_ = AlertStatus.CLOSED, frozenset(AlertStatus)
        first = store.write(lambda tx: tx.put_alert(_TROUBLE, START))
        store.write(lambda tx: tx.set_alert_status(first.id, any_, closed, START + 5, "anna"))
        second = store.write(lambda tx: tx.put_alert(_TROUBLE, START + 10))
        other = store.write(lambda tx: tx.put_alert(replace(_TROUBLE, key="x"), START + 10))
        with store.read() as reader:
            assert not reader.alert_told_since(second, START)
        store.write(lambda tx: tx.note_alert_told(first.id, START))
        with store.read() as reader:
            assert reader.alert_told_since(second, START)
            assert not reader.alert_told_since(second, START + 1)
            assert not reader.alert_told_since(other, START)
            assert not reader.alert_told_since(first, START), "itself does not count"
            found = reader.alert(first.id)
        assert found is not None
        assert found.actions_taken == ({"action": "notified", "at": START},)

    def test_what_happened_is_heard_inside_the_transaction(self, store: Store) -> None:
        heard: list[Happened] = []

        def hook(tx: Transaction, happened: Happened) -> None:
            heard.append(happened)
            tx.insert_deliveries([_new("dlv-1")])

        silent, telling = submit_one(store), submit_one(store, notify=(_HOOK,))
        store.before_commit(hook)
        store.write(lambda tx: tx.set_flag("x", "y"))
        assert heard == [], "nothing happened that people are told of"

        def work(tx: Transaction) -> None:
            _cancel(tx, silent)
            _cancel(tx, telling)
            tx.put_alert(_TROUBLE, START)
            tx.put_alert(_TROUBLE, START)

        store.write(work)
        [happened] = heard
        assert happened.ended == (EndedJob(silent.id, False), EndedJob(telling.id, True))
        assert [alert.key for alert in happened.opened] == [_TROUBLE.key]
        assert _found(store, "dlv-1").status is DeliveryStatus.WAITING

    def test_nothing_is_told_of_what_was_rolled_back(self, store: Store) -> None:
        job = submit_one(store)
        store.before_commit(lambda tx, _: tx.insert_deliveries([_new("dlv-1")]))

        def work(tx: Transaction) -> None:
            _cancel(tx, job)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            store.write(work)
        with store.read() as reader:
            assert reader.delivery("dlv-1") is None
