"""Transactions: all or nothing, guarded, many at once; reads as snapshots."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from runyard.domain import errors
from runyard.domain.job import Job
from runyard.domain.states import JobStatus
from runyard.stores.base import JobFilter, Store, Transaction
from runyard.testing.store_samples import (
    eventually,
    new_job,
    place,
    read_job,
    scheduling,
    submit,
    submit_one,
)


class _Oops(Exception):
    pass


class WriteContract:
    def test_a_write_gives_the_value_of_its_work(self, store: Store) -> None:
        assert store.write(lambda _: 42) == 42
        assert store.write_soon(lambda _: 43).result(30) == 43

    def test_what_was_written_is_read_afterwards(self, store: Store) -> None:
        for durable in (True, False):
            new = new_job()
            store.write(lambda tx, new=new: tx.insert_jobs([new]), durable=durable)  # type: ignore[misc]
            assert read_job(store, new.ref).ref == new.ref

    def test_a_failing_write_leaves_nothing(self, store: Store) -> None:
        new = new_job(labels={"a": "b"})

        def fail(tx: Transaction) -> None:
            tx.insert_jobs([new])
            tx.set_flag("half", "written")
            raise _Oops

        with pytest.raises(_Oops):
            store.write(fail)
        with store.read() as reader:
            assert reader.job(new.ref) is None
            assert reader.flag("half") is None
            assert reader.events() == []
            assert reader.waiting_shapes() == []

    def test_a_failing_write_of_many_takes_no_other_with_it(self, store: Store) -> None:
        """Writes that wait together may be committed together; each stands or falls alone."""
        gate = threading.Event()
        first = store.write_soon(lambda _: gate.wait(30))

        def work(number: int, tx: Transaction) -> int:
            [job] = tx.insert_jobs([new_job()])
            tx.set_flag(f"flag-{number}", "set")
            if number % 3 == 0:
                raise _Oops
            if number % 3 == 1:
                tx.apply(scheduling(job))
                tx.apply(scheduling(job))  # it is no longer pending
            return number

        answers = [
            store.write_soon(lambda tx, n=n: work(n, tx), durable=n % 2 == 0)  # type: ignore[misc]
            for n in range(30)
        ]
        gate.set()
        first.result(30)
        for number, answer in enumerate(answers):
            expected = {0: _Oops, 1: errors.StaleWrite}.get(number % 3)
            if expected:
                with pytest.raises(expected):
                    answer.result(30)
            else:
                assert answer.result(30) == number
        with store.read() as reader:
            flags = [number for number in range(30) if reader.flag(f"flag-{number}")]
            assert flags == [number for number in range(30) if number % 3 == 2]
            assert reader.jobs(JobFilter()).total == 10
            assert len(reader.events()) == 10

    def test_writes_that_nobody_waits_for_keep_their_order(self, store: Store) -> None:
        def add(word: str, tx: Transaction) -> None:
            tx.set_flag("order", (tx.flag("order") or "") + word)

        answers = [
            store.write_soon(lambda tx, n=n: add(f"{n} ", tx), durable=False)  # type: ignore[misc]
            for n in range(20)
        ]
        for answer in answers:
            answer.result(30)
        with store.read() as reader:
            assert reader.flag("order") == "".join(f"{n} " for n in range(20))

    def test_work_sees_its_own_changes(self, store: Store) -> None:
        def work(tx: Transaction) -> None:
            [job] = tx.insert_jobs([new_job()])
            assert tx.job(job.ref) == job
            assert [told.job_id for told in tx.events()] == [job.id]
            tx.apply(scheduling(job))
            assert [told.event.code for told in tx.events(job.id)] == [
                "job_submitted",
                "job_scheduled",
            ]
            changed = tx.job(job.id)
            assert changed is not None
            assert changed.status is JobStatus.SCHEDULED

        store.write(work)

    def test_of_many_racing_for_one_job_exactly_one_wins(self, store: Store) -> None:
        """No attempt ever runs twice at once."""
        job = submit_one(store)
        ready = threading.Barrier(12)

        def race(_: int) -> bool:
            ready.wait(30)
            try:
                store.write(lambda tx: tx.apply(scheduling(job)))
            except errors.StaleWrite:
                return False
            return True

        with ThreadPoolExecutor(12) as racers:
            assert sum(racers.map(race, range(12))) == 1
        with store.read() as reader:
            assert [told.event.code for told in reader.events(job.id)] == [
                "job_submitted",
                "job_scheduled",
            ]

    def test_exclusive_placements_never_take_a_job_twice(self, store: Store) -> None:
        jobs = submit(store, *(new_job() for _ in range(40)))
        taken: list[Job] = []

        def take(_: int) -> None:
            def work(tx: Transaction) -> list[Job]:
                heads = [
                    head for shape in tx.waiting_shapes() for head in tx.ready_jobs(shape.id, 2)
                ]
                found = tx.jobs_by_id([head.job_id for head in heads])
                for job in found:
                    place(tx, job)
                return found

            while placed := store.write(work, exclusive=True):
                taken.extend(placed)

        with ThreadPoolExecutor(6) as takers:
            list(takers.map(take, range(6)))
        assert sorted(job.id for job in taken) == [job.id for job in jobs]

    def test_a_read_is_a_snapshot(self, store: Store) -> None:
        submit_one(store)
        with store.read() as reader:
            before = reader.jobs(JobFilter())
            submit_one(store)
            store.write(lambda tx: tx.set_flag("later", "yes"))
            assert reader.jobs(JobFilter()) == before
            assert reader.flag("later") is None
            assert len(reader.events()) == 1
        with store.read() as reader:
            assert reader.jobs(JobFilter()).total == 2

    def test_a_read_does_not_wait_for_a_writer(self, store: Store) -> None:
        job = submit_one(store)
        inside, go_on = threading.Event(), threading.Event()

        def slow(tx: Transaction) -> None:
            tx.apply(scheduling(job))
            inside.set()
            assert go_on.wait(30)

        answer = store.write_soon(slow)
        assert inside.wait(30)
        assert read_job(store, job.id).status is JobStatus.PENDING
        go_on.set()
        answer.result(30)
        assert read_job(store, job.id).status is JobStatus.SCHEDULED

    def test_reads_and_writes_from_many_threads(self, store: Store) -> None:
        def use(number: int) -> int:
            [job] = submit(store, new_job(labels={"n": str(number)}))
            with store.read() as reader:
                assert reader.job(job.id) is not None
                return reader.jobs(JobFilter(labels={"n": str(number)})).total

        with ThreadPoolExecutor(8) as users:
            assert list(users.map(use, range(80))) == [1] * 80

    def test_ten_thousand_jobs_in_one_write(self, store: Store) -> None:
        began = time.monotonic()
        jobs = submit(store, *(new_job(labels={"bulk": "yes"}) for _ in range(10_000)))
        assert len({job.id for job in jobs}) == 10_000
        assert [job.id for job in jobs] == sorted(job.id for job in jobs)
        # No measurement: only that it is not one round trip, or one sync, per job.
        assert time.monotonic() - began < 100
        with store.read() as reader:
            assert reader.count_by_status()[JobStatus.PENDING] == 10_000
            assert reader.last_event_id() >= 10_000
            assert len(reader.ready_jobs(jobs[0].shape_id, 20_000)) == 10_000

    def test_closing_finishes_what_was_begun(self, store: Store) -> None:
        done: list[int] = []
        answers = [store.write_soon(lambda _, n=n: done.append(n)) for n in range(20)]  # type: ignore[misc]
        store.close()
        assert all(answer.done() for answer in answers)
        assert done == list(range(20))
        with pytest.raises(errors.ShuttingDown):
            store.write(lambda _: None)

    def test_a_cancelled_answer_does_not_stop_the_store(self, store: Store) -> None:
        gate = threading.Event()
        first = store.write_soon(lambda _: gate.wait(30))
        second = store.write_soon(lambda tx: tx.set_flag("never", "set"))
        assert second.cancel()
        gate.set()
        first.result(30)
        assert store.write(lambda tx: tx.flag("never")) is None

    def test_the_clock_runs(self, store: Store) -> None:
        first = store.now()
        assert abs(first - time.time()) < 3600
        eventually(lambda: store.now() > first)
