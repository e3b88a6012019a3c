"""Sends what the outbox holds: at least once, with patience, never in the way of anything else.

A delivery is claimed in the store before it is sent, so that of several servers one sends it; the
claim of a server that died runs out. Whether a try arrived is written down after it: a crash in
between repeats it, with the same delivery id.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from loguru import logger

from runyard.domain import errors, notifications
from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import TEST, Delivery, DeliveryStatus, Recipient
from runyard.notify.base import Sender, Undelivered
from runyard.stores.base import Store, Transaction

_AT_ONCE = 16
_AT_ONCE_EACH = 2  # so that a slow receiver holds up only itself
_PAGE = 200
_PAGES = 25
_CLAIM_S = 120.0
_LOOK_S = 15.0
_RETRY_LOOK_S = 1.0


class Deliverer:
    def __init__(
        self,
        store: Store,
        name: str,
        senders: Mapping[str, Sender],
        retry_delays: Sequence[float],
    ) -> None:
        self._store = store
        self._name = name
        self._senders = senders
        self._retry_delays = retry_delays
        self._lock = threading.Lock()
        self._sending: Counter[tuple[str, str]] = Counter()
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="notify", daemon=True)

    def start(self) -> None:
        """Also goes on with what this server was sending when it was killed."""
        self._store.write(
            lambda tx: tx.release_deliveries(self._name, self._store.now()), durable=False
        )
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self, patience_s: float = 2.0) -> None:
        """Send what is due if that is quick; the rest is sent after the next start."""
        deadline = time.monotonic() + patience_s
        self._woken.set()
        while time.monotonic() < deadline and self._busy_or_due():
            time.sleep(0.02)
        self._stopping = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(max(0.1, deadline - time.monotonic()))

    def _busy_or_due(self) -> bool:
        if self._sending.total():
            return True
        with self._store.read() as reader:
            return bool(reader.due_deliveries(self._store.now(), 1))

    def _work(self) -> None:
        while not self._stopping:
            self._woken.clear()
            try:
                pause = self._send_due()
            except errors.ShuttingDown:
                return
            except Exception as error:
                logger.opt(exception=error).error("sending notifications failed and goes on")
                pause = _RETRY_LOOK_S
            self._woken.wait(pause)

    def _send_due(self) -> float:
        """Begin what can be begun; how long until there may be more."""
        now = self._store.now()
        with self._store.read() as reader:
            after: Delivery | None = None
            for _ in range(_PAGES):
                page = reader.due_deliveries(now, _PAGE, after)
                if not page or not self._begin(page):
                    break
                after = page[-1]
            due = reader.next_delivery_due()
        if due is None:
            return _LOOK_S
        # What is due and not begun waits for a place, and whoever gives one back wakes us.
        return _RETRY_LOOK_S if due <= now else min(due - now, _LOOK_S)

    def _begin(self, page: Sequence[Delivery]) -> bool:
        """False when there is no place left."""
        by_target: dict[tuple[str, str], list[Delivery]] = {}
        for found in page:
            by_target.setdefault(_key(found.recipient), []).append(found)
        for key, waiting in by_target.items():
            places = self._take_places(key, len(waiting))
            if places is None:
                return False
            for place in range(places):
                share = waiting[place::places]
                threading.Thread(
                    target=self._send_all, args=[share, key], name="notify-send", daemon=True
                ).start()
        return True

    def _take_places(self, key: tuple[str, str], wanted: int) -> int | None:
        """How many may send to this receiver; None when nobody may send anything."""
        with self._lock:
            free = _AT_ONCE - self._sending.total()
            if self._stopping or free <= 0:
                return None
            places = min(_AT_ONCE_EACH - self._sending[key], free, wanted)
            self._sending[key] += places
            return places

    def _send_all(self, share: Sequence[Delivery], key: tuple[str, str]) -> None:
        try:
            for found in share:
                if self._stopping:
                    return
                self._claim_and_send(found)
        except errors.ShuttingDown:
            return  # the rest is sent after the next start
        except Exception as error:
            logger.opt(exception=error).error("sending a notification failed")
            time.sleep(_RETRY_LOOK_S)  # a full disk, say: not again at once
        finally:
            with self._lock:
                self._sending[key] -= 1
                if not self._sending[key]:
                    del self._sending[key]
            self._woken.set()

    def _claim_and_send(self, found: Delivery) -> None:
        def claim(tx: Transaction) -> tuple[bool, NotifyTarget | None]:
            until = self._store.now() + _CLAIM_S
            won = tx.claim_delivery(found, self._name, until)
            return won, _target(tx, found.recipient)

        won, target = self._store.write(claim, durable=False)
        if not won:  # another server was quicker
            return
        claimed = replace(found, claimed_by=self._name, tries=found.tries + 1)
        failed = self._try(claimed, target)
        self._finish(claimed, failed)

    def _try(self, claimed: Delivery, target: NotifyTarget | None) -> Undelivered | None:
        if target is None:
            name = claimed.recipient.name
            return Undelivered(notifications.TARGET_REMOVED, again=False, name=name)
        try:
            self._senders[target.type].send(target, claimed, self._store.now())
        except Undelivered as failed:
            return failed
        except Exception as error:
            # Its words may hold the address: only its kind is kept.
            return Undelivered(notifications.SENDER_FAILED, kind=type(error).__name__)
        return None

    def _finish(self, claimed: Delivery, failed: Undelivered | None) -> None:
        now = self._store.now()
        log = logger.bind(job=claimed.job_ref or "-")
        if failed is None:
            sent = DeliveryStatus.SENT
            self._store.write(lambda tx: tx.finish_delivery(claimed, sent, now), durable=False)
            log.info("notification sent: {} to {}", claimed.event, _shown(claimed.recipient))
            return
        again = self._again_at(claimed, failed, now)
        status = DeliveryStatus.GIVEN_UP if again is None else DeliveryStatus.WAITING
        reason = failed.reason
        self._store.write(
            lambda tx: tx.finish_delivery(claimed, status, now, due_at=again, error=reason),
            durable=False,
        )
        words = "notification not delivered, given up" if again is None else "try again later"
        log.log(
            "WARNING" if again is None or claimed.tries == 1 else "DEBUG",
            "notification {} to {}, try {}: {} {}: {}",
            claimed.event,
            _shown(claimed.recipient),
            claimed.tries,
            reason.code,
            dict(reason.params),
            words,
        )

    def _again_at(self, claimed: Delivery, failed: Undelivered, now: float) -> float | None:
        if not failed.again or claimed.event == TEST:
            return None
        return notifications.next_try(
            claimed.created_at, claimed.tries, self._retry_delays, now, failed.wished_s
        )


def _target(tx: Transaction, recipient: Recipient) -> NotifyTarget | None:
    """As it is now; None when it was removed."""
    if recipient.workspace_target is None:
        return NotifyTarget(recipient.type, recipient.url, recipient.secret)  # type: ignore[arg-type]
    found = tx.notification_target(recipient.workspace_target)
    return None if found is None else found.where


def _key(recipient: Recipient) -> tuple[str, str]:
    if recipient.workspace_target is not None:
        return "workspace", str(recipient.workspace_target)
    return recipient.type, recipient.url


def _shown(recipient: Recipient) -> str:
    if recipient.workspace_target is not None:
        return recipient.name
    return notifications.shown_url(recipient.type, recipient.url)
