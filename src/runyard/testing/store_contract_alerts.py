"""What a store promises about alerts."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from runyard.domain import errors
from runyard.domain.monitoring.alert import (
    Alert,
    AlertFilter,
    AlertLevel,
    AlertStatus,
    NewAlert,
)
from runyard.stores.base import Store
from runyard.testing.store_samples import START, submit_one

_NOT_CLOSED = frozenset({AlertStatus.OPEN, AlertStatus.ACKNOWLEDGED})


def _found(key: str = "stuck:1", **changes: Any) -> NewAlert:
    return replace(NewAlert(key, AlertLevel.CRITICAL, "cannot_be_killed"), **changes)


def _put(store: Store, found: NewAlert, at: float = START) -> Alert:
    return store.write(lambda tx: tx.put_alert(found, at))


def _set(store: Store, alert: Alert, to: AlertStatus, at: float = START, by: str = "anna") -> bool:
    return store.write(lambda tx: tx.set_alert_status(alert.id, _NOT_CLOSED, to, at, by))


class AlertContract:
    def test_an_alert_comes_back_exactly(self, store: Store) -> None:
        job = submit_one(store)
        found = _found(
            params={"processes": [{"pid": 7}]},
            job_id=job.id,
            attempt_id=job.attempt_id(1),
            node_id="node-1",
            evidence={"lines": ["a", "b"], "loss": 1.5},
            actions_taken=({"action": "swept", "at": START},),
        )
        alert = _put(store, found)
        assert alert == Alert(
            id=alert.id,
            key="stuck:1",
            level=AlertLevel.CRITICAL,
            code="cannot_be_killed",
            params={"processes": [{"pid": 7}]},
            job_id=job.id,
            job_ref=job.ref,
            attempt_id=job.attempt_id(1),
            node_id="node-1",
            status=AlertStatus.OPEN,
            times=1,
            opened_at=START,
            seen_at=START,
            closed_at=None,
            acknowledged_by=None,
            evidence={"lines": ["a", "b"], "loss": 1.5},
            actions_taken=({"action": "swept", "at": START},),
        )
        with store.read() as reader:
            assert reader.alert(alert.id) == alert
            assert reader.alert_by_key("stuck:1") == alert
            assert reader.alert(alert.id + 1) is None
            assert reader.alert_by_key("stuck:2") is None

    def test_the_same_trouble_is_one_alert_until_it_is_closed(self, store: Store) -> None:
        first = _put(store, _found(evidence={"n": 1}, actions_taken=({"action": "a"},)))
        _set(store, first, AlertStatus.ACKNOWLEDGED)
        again = _found(level=AlertLevel.ERROR, evidence={"n": 2}, actions_taken=({"action": "b"},))
        second = _put(store, again, START + 5)
        assert (second.id, second.times, second.opened_at, second.seen_at) == (
            first.id,
            2,
            START,
            START + 5,
        )
        assert second.status is AlertStatus.ACKNOWLEDGED
        assert (second.level, second.evidence) == (AlertLevel.ERROR, {"n": 2})
        assert [action["action"] for action in second.actions_taken] == ["a", "b"]
        assert _set(store, second, AlertStatus.CLOSED, START + 6)
        third = _put(store, _found(), START + 7)
        assert (third.id > first.id, third.times, third.status) == (True, 1, AlertStatus.OPEN)

    def test_a_status_changes_only_from_what_is_expected(self, store: Store) -> None:
        alert = _put(store, _found())
        assert _set(store, alert, AlertStatus.ACKNOWLEDGED, START + 1, "anna")
        assert _set(store, alert, AlertStatus.CLOSED, START + 2, "bert")
        assert not _set(store, alert, AlertStatus.ACKNOWLEDGED, START + 3, "carl")
        assert not _set(store, alert, AlertStatus.CLOSED, START + 3)
        with store.read() as reader:
            now = reader.alert(alert.id)
        assert now is not None
        assert (now.status, now.closed_at, now.acknowledged_by) == (
            AlertStatus.CLOSED,
            START + 2,
            "anna",
        )

    def test_lists_by_filter_newest_first_page_by_page(self, store: Store) -> None:
        job = submit_one(store)
        made = [
            _put(store, _found("a", job_id=job.id)),
            _put(store, _found("b", level=AlertLevel.WARNING, code="slow")),
            _put(store, _found("c")),
        ]
        _set(store, made[2], AlertStatus.CLOSED)

        def keys(**chosen: Any) -> list[str]:
            with store.read() as reader:
                return [alert.key for alert in reader.alerts(AlertFilter(**chosen)).alerts]

        assert keys() == ["c", "b", "a"]
        assert keys(statuses=(AlertStatus.OPEN, AlertStatus.ACKNOWLEDGED)) == ["b", "a"]
        assert keys(levels=(AlertLevel.CRITICAL,)) == ["c", "a"]
        assert keys(codes=("slow",)) == ["b"]
        assert keys(job_id=job.id) == ["a"]
        with store.read() as reader:
            page = reader.alerts(AlertFilter(), limit=2)
            assert ([alert.key for alert in page.alerts], page.total) == (["c", "b"], 3)
            rest = reader.alerts(AlertFilter(), limit=2, cursor=page.next_cursor)
            assert ([alert.key for alert in rest.alerts], rest.next_cursor) == (["a"], None)
            with pytest.raises(errors.BadRequest):
                reader.alerts(AlertFilter(), cursor="x")

    def test_those_of_a_job_are_closed_by_their_codes(self, store: Store) -> None:
        job, other = submit_one(store), submit_one(store)
        mine = _put(store, _found("a", job_id=job.id))
        _put(store, _found("b", job_id=job.id, code="slow"))
        _put(store, _found("c", job_id=other.id))
        codes = ("cannot_be_killed", "cancel_stale")
        closed = store.write(lambda tx: tx.close_alerts_of_job(job.id, codes, START + 9))
        assert [(alert.id, alert.status, alert.closed_at) for alert in closed] == [
            (mine.id, AlertStatus.CLOSED, START + 9)
        ]
        assert store.write(lambda tx: tx.close_alerts_of_job(job.id, codes, START + 9)) == []
        with store.read() as reader:
            kept = reader.alerts(AlertFilter(statuses=(AlertStatus.OPEN,))).alerts
        assert [alert.key for alert in kept] == ["c", "b"]

    def test_they_go_with_their_job(self, store: Store) -> None:
        job = submit_one(store)
        alert = _put(store, _found(job_id=job.id))
        store.write(lambda tx: tx.delete_job(job.id))
        with store.read() as reader:
            assert reader.alert(alert.id) is None

    def test_many_who_find_it_at_once_make_one(self, store: Store) -> None:
        ready = threading.Barrier(6)

        def find(n: int) -> int:
            ready.wait(30)
            return _put(store, _found(), START + n).id

        with ThreadPoolExecutor(6) as servers:
            assert len(set(servers.map(find, range(6)))) == 1
        with store.read() as reader:
            [alert] = reader.alerts(AlertFilter()).alerts
        assert 1 <= alert.times <= 6
