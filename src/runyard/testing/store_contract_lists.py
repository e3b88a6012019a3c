"""Lists of jobs: newest first, filters, pages."""

from __future__ import annotations

import pytest

from runyard.domain import errors, events
from runyard.domain.events import Event
from runyard.domain.job import ArrayPlace, Job, JobType
from runyard.domain.states import JobStatus, Move, move
from runyard.stores.base import JOB_ORDERS, JobFilter, Store, Transaction
from runyard.testing.store_samples import START, new_job, scheduling, submit


def _names(store: Store, chosen: JobFilter) -> list[str]:
    with store.read() as reader:
        page = reader.jobs(chosen)
    assert page.total == len(page.jobs)
    return [job.spec.name for job in page.jobs]


def _apply(store: Store, *moves: Move) -> None:
    def write(tx: Transaction) -> None:
        for done in moves:
            tx.apply(done)

    store.write(write)


def _failing(job: Job, at: float) -> Move:
    event = Event(events.JOB_FAILED, at, "scheduler")
    return move(job.id, JobStatus.SCHEDULED, JobStatus.FAILED, event, completed_at=at)


class ListContract:
    def test_newest_first_in_pages(self, store: Store) -> None:
        jobs = submit(store, *(new_job() for _ in range(7)))
        newest = [job.id for job in reversed(jobs)]
        seen: list[int] = []
        cursor = None
        with store.read() as reader:
            for size in (3, 3, 1):
                page = reader.jobs(JobFilter(), limit=3, cursor=cursor)
                assert len(page.jobs) == size
                assert page.total == 7
                seen += [job.id for job in page.jobs]
                cursor = page.next_cursor
            assert cursor is None
            assert seen == newest
            assert reader.jobs(JobFilter(), limit=7).next_cursor is None

    def test_a_cursor_stays_right_while_jobs_come_and_go(self, store: Store) -> None:
        jobs = submit(store, *(new_job() for _ in range(6)))
        with store.read() as reader:
            first = reader.jobs(JobFilter(), limit=3)
        submit(store, new_job())
        store.write(lambda tx: tx.delete_job(first.jobs[-1].id))
        with store.read() as reader:
            second = reader.jobs(JobFilter(), limit=3, cursor=first.next_cursor)
        assert [job.id for job in second.jobs] == [job.id for job in reversed(jobs[:3])]

    def test_a_cursor_that_was_never_given(self, store: Store) -> None:
        with store.read() as reader:
            for cursor in ("x", "", "-1", "1;2", "9" * 40, "²"):
                with pytest.raises(errors.BadRequest):
                    reader.jobs(JobFilter(), cursor=cursor)

    def test_by_status_type_owner_time_and_array(self, store: Store) -> None:
        jobs = submit(
            store,
            new_job(name="a", owner="anna", submitted_at=START),
            new_job(name="b", owner="bert", job_type=JobType.PIPELINE, submitted_at=START + 1),
            new_job(name="c", owner="anna", submitted_at=START + 2, array=ArrayPlace("arr", 0)),
        )
        store.write(lambda tx: tx.apply(scheduling(jobs[0])))
        assert _names(store, JobFilter()) == ["c", "b", "a"]
        assert _names(store, JobFilter(statuses=(JobStatus.SCHEDULED,))) == ["a"]
        both = (JobStatus.SCHEDULED, JobStatus.PENDING)
        assert _names(store, JobFilter(statuses=both)) == ["c", "b", "a"]
        assert _names(store, JobFilter(statuses=(JobStatus.FAILED,))) == []
        assert _names(store, JobFilter(owners=("anna",))) == ["c", "a"]
        assert _names(store, JobFilter(owners=("anna", "bert"))) == ["c", "b", "a"]
        assert _names(store, JobFilter(job_types=("pipeline",))) == ["b"]
        assert _names(store, JobFilter(since=START + 1)) == ["c", "b"]
        assert _names(store, JobFilter(array_id="arr")) == ["c"]
        pending = (JobStatus.PENDING,)
        assert _names(store, JobFilter(owners=("anna",), statuses=pending)) == ["c"]

    def test_by_when_they_ended_however_long_ago_they_were_submitted(self, store: Store) -> None:
        names = ("early", "late", "runs on")
        early, late, _ = jobs = submit(
            store, *(new_job(name=name, submitted_at=START) for name in names)
        )
        ends = [_failing(late, START + 9_000), _failing(early, START + 10_000)]
        _apply(store, *map(scheduling, jobs), *ends)
        assert _names(store, JobFilter(ended_since=START + 8_000)) == ["late", "early"]
        assert _names(store, JobFilter(ended_since=START + 10_000)) == ["early"]
        assert _names(store, JobFilter(ended_since=START + 10_001)) == []
        assert _names(store, JobFilter(since=START + 8_000)) == []
        with store.read() as reader:
            page = reader.jobs(JobFilter(ended_since=START), limit=1, order="-ended")
            assert ([job.spec.name for job in page.jobs], page.total) == (["early"], 2)
            assert reader.count_jobs(JobFilter(ended_since=START)) == {JobStatus.FAILED: 2}

    def test_by_labels_all_of_them(self, store: Store) -> None:
        submit(
            store,
            new_job(name="a", labels={"team": "x", "gpu": "yes"}),
            new_job(name="b", labels={"team": "x"}),
            new_job(name="c", labels={"team": "xy"}),
        )
        assert _names(store, JobFilter(labels={"team": "x"})) == ["b", "a"]
        assert _names(store, JobFilter(labels={"team": "x", "gpu": "yes"})) == ["a"]
        assert _names(store, JobFilter(labels={"other": "x"})) == []

    def test_by_text_in_name_description_or_id(self, store: Store) -> None:
        [first, *_] = submit(
            store,
            new_job(name="ResNet50"),
            new_job(name="plain", description="tries the resnet again"),
            new_job(name="100%_sure"),
            new_job(name="训练 one"),
        )
        assert _names(store, JobFilter(text="resnet")) == ["plain", "ResNet50"]
        assert _names(store, JobFilter(text="训练")) == ["训练 one"]
        # Signs that mean something to LIKE mean only themselves.
        assert _names(store, JobFilter(text="%_")) == ["100%_sure"]
        assert _names(store, JobFilter(text="e_N")) == []
        assert _names(store, JobFilter(text="\\")) == []
        assert _names(store, JobFilter(text=first.ref)) == ["ResNet50"]

    def test_in_another_order(self, store: Store) -> None:
        names = ("b", "C", "a")
        submit(store, *(new_job(name=name, owner="anna") for name in names))
        with store.read() as reader:
            for order, expected in (
                ("-submitted", ["a", "C", "b"]),
                ("submitted", ["b", "C", "a"]),
                ("name", ["a", "b", "C"]),
                ("-name", ["C", "b", "a"]),
                ("started", ["a", "C", "b"]),  # none was: the newest first
            ):
                page = reader.jobs(JobFilter(), order=order)
                assert [job.spec.name for job in page.jobs] == expected, order

    def test_pages_of_another_order(self, store: Store) -> None:
        submit(store, *(new_job(name=f"job {n}") for n in range(5)))
        seen: list[str] = []
        cursor = None
        with store.read() as reader:
            for size in (2, 2, 1):
                page = reader.jobs(JobFilter(), limit=2, cursor=cursor, order="name")
                assert (len(page.jobs), page.total) == (size, 5)
                seen += [job.spec.name for job in page.jobs]
                cursor = page.next_cursor
        assert cursor is None
        assert seen == [f"job {n}" for n in range(5)]

    def test_every_order_is_known(self, store: Store) -> None:
        submit(store, new_job(), new_job())
        with store.read() as reader:
            for name in JOB_ORDERS:
                for order in (name, f"-{name}"):
                    assert len(reader.jobs(JobFilter(text="job"), order=order).jobs) <= 2

    def test_counts_by_status_of_some(self, store: Store) -> None:
        jobs = submit(
            store, new_job(owner="anna"), new_job(owner="anna"), new_job(owner="bert", name="x")
        )
        store.write(lambda tx: tx.apply(scheduling(jobs[0])))
        with store.read() as reader:
            both = {JobStatus.SCHEDULED: 1, JobStatus.PENDING: 1}
            assert reader.count_jobs(JobFilter(owners=("anna",))) == both
            # Chips show all statuses, whichever of them is chosen.
            chosen = JobFilter(owners=("anna",), statuses=(JobStatus.FAILED,))
            assert reader.count_jobs(chosen) == both
            assert reader.count_jobs(JobFilter(text="x", owners=("bert",))) == {
                JobStatus.PENDING: 1
            }
            assert reader.count_jobs(JobFilter(owners=("nobody",))) == {}
