"""Sending what the outbox holds: once, again, not for ever, and nobody in the way of another."""

import threading
from dataclasses import replace

import pytest

from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import (
    TRIED_FOR_S,
    DeliveryStatus,
    NewDelivery,
    NewWorkspaceTarget,
    Recipient,
    next_try,
)
from runyard.notify.base import Undelivered
from runyard.notify.delivering import Deliverer
from yards import until


class ScriptedSender:
    """Does what the test says, and remembers what it was asked."""

    def __init__(self):
        self.sent = []
        self.failing = {}  # url -> what is raised
        self.gates = {}  # url -> what a send waits for

    def send(self, target, delivery, now):  # noqa: ARG002
        self.sent.append((target, delivery))
        if target.url in self.gates:
            self.gates[target.url].wait(30)
        if target.url in self.failing:
            raise self.failing[target.url]

    def ids(self):
        return [delivery.delivery_id for _, delivery in list(self.sent)]


@pytest.fixture
def sender():
    made = ScriptedSender()
    yield made
    for gate in made.gates.values():
        gate.set()


@pytest.fixture
def make_deliverer(store, sender):
    made = []

    def make(name="node-1", delays=(0.05,)):
        made.append(Deliverer(store, name, {"webhook": sender}, delays))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop(0.2)


def write(store, name, *, url="http://x/", at=None, event="failed", recipient=None):
    to = recipient or Recipient("webhook", url=url, secret="s3cret")
    new = NewDelivery(name, event, None, to, {"delivery": name}, at or store.now())
    store.write(lambda tx: tx.insert_deliveries([new]))


def found(store, name):
    with store.read() as reader:
        return reader.delivery(name)


def status(store, name):
    return found(store, name).status.value


def test_what_waits_is_sent_once_and_noted(store, sender, make_deliverer):
    """R38"""
    write(store, "dlv-1")
    make_deliverer()
    until(lambda: status(store, "dlv-1") == "sent")
    assert sender.ids() == ["dlv-1"]
    [(target, delivery)] = sender.sent
    assert (target.url, target.secret) == ("http://x/", "s3cret")
    assert delivery.tries == 1
    assert found(store, "dlv-1").sent_at is not None


def test_it_is_tried_until_it_arrives(store, sender, make_deliverer):
    """R16, R38; each time with the same id."""
    sender.failing["http://x/"] = Undelivered("http_status", status=500)
    write(store, "dlv-1")
    make_deliverer()
    until(lambda: len(sender.sent) >= 3)
    assert found(store, "dlv-1").last_error.params == {"status": 500}
    sender.failing.clear()
    until(lambda: status(store, "dlv-1") == "sent")
    assert set(sender.ids()) == {"dlv-1"}
    assert found(store, "dlv-1").tries == len(sender.sent)


def test_what_cannot_help_is_not_tried_again(store, sender, make_deliverer):
    sender.failing["http://x/"] = Undelivered("bad_address", again=False)
    write(store, "dlv-1")
    make_deliverer()
    until(lambda: status(store, "dlv-1") == "given_up")
    assert len(sender.sent) == 1


def test_a_test_is_tried_once(store, sender, make_deliverer):
    sender.failing["http://x/"] = Undelivered("http_status", status=500)
    write(store, "dlv-1", event="test")
    make_deliverer()
    until(lambda: status(store, "dlv-1") == "given_up")
    assert len(sender.sent) == 1


def test_after_a_day_it_is_given_up(store, sender, make_deliverer):
    sender.failing["http://x/"] = Undelivered("http_status", status=500)
    write(store, "dlv-1", at=store.now() - TRIED_FOR_S)
    make_deliverer()
    until(lambda: status(store, "dlv-1") == "given_up")
    assert found(store, "dlv-1").last_error.code == "http_status"


def test_a_fault_of_a_sender_is_a_failed_try_and_tells_no_secret(store, sender, make_deliverer):
    sender.failing["http://x/"] = RuntimeError("http://x/?token=s3cret")
    write(store, "dlv-1")
    write(store, "dlv-2", url="http://y/")
    make_deliverer(delays=(60.0,))
    until(lambda: status(store, "dlv-2") == "sent")
    until(lambda: found(store, "dlv-1").last_error)
    error = found(store, "dlv-1").last_error
    assert (error.code, dict(error.params)) == ("sender_failed", {"kind": "RuntimeError"})


def test_a_slow_receiver_holds_up_only_itself(store, sender, make_deliverer):
    sender.gates["http://slow/"] = threading.Event()
    for n in range(300):
        write(store, f"slow-{n}", url="http://slow/")
    write(store, "dlv-1", url="http://quick/")
    make_deliverer()
    until(lambda: status(store, "dlv-1") == "sent")
    assert len(sender.ids()) - 1 <= 2, "two at a time for each receiver"


def test_many_for_one_receiver_are_sent_each_once(store, sender, make_deliverer):
    names = [f"dlv-{n}" for n in range(700)]
    for name in names:
        write(store, name)
    make_deliverer()
    until(lambda: len(sender.ids()) >= 700, 60)
    until(lambda: all(status(store, name) == "sent" for name in names), 60)
    assert sorted(sender.ids()) == sorted(names)


def test_a_target_of_the_workspace_is_used_as_it_is_now(store, sender, make_deliverer):
    """A corrected address also helps what still waits."""
    wrong = NewWorkspaceTarget("team", NotifyTarget("webhook", "http://wrong/"))
    kept = store.write(lambda tx: tx.insert_notification_target(wrong, "anna", store.now()))
    right = replace(wrong, where=NotifyTarget("webhook", "http://right/", "new"))
    store.write(lambda tx: tx.update_notification_target(kept.id, right))
    write(store, "dlv-1", recipient=Recipient("webhook", "team", kept.id))
    make_deliverer()
    until(lambda: status(store, "dlv-1") == "sent")
    assert sender.sent[0][0] == right.where


def test_a_target_that_was_removed_gets_nothing_more(store, sender, make_deliverer):
    write(store, "dlv-1", recipient=Recipient("webhook", "team", 17))
    make_deliverer()
    until(lambda: status(store, "dlv-1") == "given_up")
    assert found(store, "dlv-1").last_error.params == {"name": "team"}
    assert sender.sent == []


def test_two_servers_send_each_once(store, sender, make_deliverer):
    for n in range(100):
        write(store, f"dlv-{n}", url=f"http://x{n % 20}/")
    for name in ("node-1", "node-2"):
        make_deliverer(name)
    until(lambda: all(status(store, f"dlv-{n}") == "sent" for n in range(100)), 60)
    assert sorted(sender.ids()) == sorted(f"dlv-{n}" for n in range(100))


def test_a_restart_goes_on_with_what_was_being_sent(store, make_deliverer):
    """At least once: whether it arrived before the crash, nobody can know."""
    write(store, "dlv-1")
    claimed = found(store, "dlv-1")
    store.write(lambda tx: tx.claim_delivery(claimed, "node-1", store.now() + 3600))
    make_deliverer("node-1")
    until(lambda: status(store, "dlv-1") == "sent")


def test_the_claim_of_another_server_is_left_to_it(store, sender, make_deliverer):
    write(store, "dlv-1")
    claimed = found(store, "dlv-1")
    store.write(lambda tx: tx.claim_delivery(claimed, "node-2", store.now() + 3600))
    write(store, "dlv-2")
    make_deliverer("node-1")
    until(lambda: status(store, "dlv-2") == "sent")
    assert sender.ids() == ["dlv-2"]
    assert found(store, "dlv-1").status is DeliveryStatus.SENDING


def test_stopping_sends_what_is_due_first(store, make_deliverer):
    deliverer = make_deliverer()
    for n in range(20):
        write(store, f"dlv-{n}", url=f"http://x{n}/")
    deliverer.stop(30)
    assert all(status(store, f"dlv-{n}") == "sent" for n in range(20))


@pytest.mark.parametrize(
    ("tries", "wished", "delay"),
    [(1, 0, 5), (2, 0, 30), (3, 0, 30), (50, 0, 30), (1, 90, 90)],
)
def test_the_last_delay_repeats(tries, wished, delay):
    assert next_try(1000.0, tries, (5.0, 30.0), 2000.0, wished) == 2000.0 + delay


def test_nothing_is_tried_for_more_than_a_day():
    assert next_try(1000.0, 9, (600.0,), 1000.0 + TRIED_FOR_S - 600) is not None
    assert next_try(1000.0, 9, (600.0,), 1000.0 + TRIED_FOR_S - 599) is None
