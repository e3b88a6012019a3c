"""Events: one transaction with what they tell, heard once, in order, by everybody."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from runyard.domain import errors, events
from runyard.domain.events import Event, StoredEvent
from runyard.domain.states import JobStatus
from runyard.stores.base import Store, Transaction
from runyard.testing.store_samples import (
    START,
    eventually,
    new_job,
    scheduling,
    submit,
    submit_one,
)


class EventContract:
    def test_a_submit_tells_of_every_job(self, store: Store) -> None:
        jobs = submit(store, new_job(owner="anna"), new_job(owner="bert"))
        with store.read() as reader:
            told = reader.events()
        assert [(one.job_id, one.job_ref, one.event.code, one.event.actor) for one in told] == [
            (jobs[0].id, jobs[0].ref, events.JOB_SUBMITTED, "anna"),
            (jobs[1].id, jobs[1].ref, events.JOB_SUBMITTED, "bert"),
        ]
        assert told[0].event.at == jobs[0].submitted_at

    def test_an_event_comes_back_as_it_was(self, store: Store) -> None:
        job = submit_one(store)
        event = Event("job_held", START, "anna", "attempt.1", {"why": "so", "numbers": [1, 2.5]})
        first = store.write(lambda tx: tx.append_event(job.id, event))
        second = store.write(lambda tx: tx.append_event(None, Event("queue_stopped", START, "x")))
        with store.read() as reader:
            assert reader.events(job.id)[-1] == StoredEvent(first, job.id, job.ref, event)
            assert reader.events()[-1].job_ref is None
            assert reader.last_event_id() == second

    def test_events_after_an_id_and_up_to_a_limit(self, store: Store) -> None:
        job, other = submit(store, new_job(), new_job())
        ids = [
            store.write(lambda tx, n=n: tx.append_event(job.id, Event(f"code_{n}", START, "x")))  # type: ignore[misc]
            for n in range(5)
        ]
        with store.read() as reader:
            assert [told.id for told in reader.events(job.id, after=ids[1])] == ids[2:]
            assert [told.id for told in reader.events(job.id, after=ids[0], limit=2)] == ids[1:3]
            assert [told.job_id for told in reader.events(other.id)] == [other.id]
            assert reader.events(after=ids[-1]) == []

    def test_without_events_the_last_id_is_nought(self, store: Store) -> None:
        with store.read() as reader:
            assert reader.last_event_id() == 0

    def test_an_event_for_a_job_that_is_not_there(self, store: Store) -> None:
        with pytest.raises(errors.JobNotFound):
            store.write(lambda tx: tx.append_event(987, Event("job_held", START, "x")))

    def test_subscribers_hear_every_event_once_and_in_order(self, store: Store) -> None:
        heard: list[StoredEvent] = []
        store.subscribe(heard.extend)

        def use(_: int) -> None:
            job = submit_one(store)
            store.write(lambda tx: tx.apply(scheduling(job)))

        with ThreadPoolExecutor(6) as users:
            list(users.map(use, range(30)))
        with store.read() as reader:
            told = reader.events()
        assert len(told) == 60
        eventually(lambda: len(heard) >= 60)
        assert heard == told

    def test_subscribers_hear_of_nothing_that_was_rolled_back(self, store: Store) -> None:
        heard: list[StoredEvent] = []
        store.subscribe(heard.extend)
        job = submit_one(store)

        def fail(tx: Transaction) -> None:
            tx.append_event(job.id, Event("job_held", START, "x"))
            tx.apply(scheduling(job))
            tx.update_job(job.id, frozenset({JobStatus.PENDING}), hold=True)

        with pytest.raises(errors.StaleWrite):
            store.write(fail)
        last = store.write(lambda tx: tx.append_event(job.id, Event("job_released", START, "x")))
        eventually(lambda: bool(heard) and heard[-1].id == last)
        assert [told.event.code for told in heard] == ["job_submitted", "job_released"]

    def test_what_is_heard_can_be_read(self, store: Store) -> None:
        seen: list[bool] = []
        heard = threading.Event()

        def hear(told: object) -> None:
            assert isinstance(told, list | tuple)
            with store.read() as reader:
                seen.append(reader.job(told[0].job_id) is not None)
            heard.set()

        store.subscribe(hear)
        submit_one(store)
        assert heard.wait(60)
        assert seen == [True]

    def test_a_subscriber_that_fails_does_not_stop_the_others(self, store: Store) -> None:
        heard: list[StoredEvent] = []

        def fail(_: object) -> None:
            raise RuntimeError("a subscriber with a bug")

        store.subscribe(fail)
        store.subscribe(heard.extend)
        submit_one(store)
        submit_one(store)
        eventually(lambda: len(heard) == 2)
