"""The queue: shapes, order, places, delays."""

from __future__ import annotations

import pytest

from runyard.domain.job import ArrayPlace, Job, Priority
from runyard.domain.reasons import Reason
from runyard.domain.resources import Request
from runyard.domain.states import JobStatus
from runyard.stores.base import Store, Transaction
from runyard.testing.store_samples import (
    START,
    new_job,
    read_job,
    scheduling,
    submit,
    submit_one,
)

PENDING = frozenset({JobStatus.PENDING})


def _waiting_ids(store: Store, job: Job, limit: int = 100) -> list[int]:
    with store.read() as reader:
        return [waiting.job_id for waiting in reader.waiting_ahead(job, limit)]


def _in_three_priorities(store: Store) -> list[Job]:
    """Two of each priority, given in queue order; they were submitted in another order."""
    low, medium, high = Priority.LOW, Priority.MEDIUM, Priority.HIGH
    jobs = submit(
        store,
        new_job(priority=low, submitted_at=START),
        new_job(priority=high, submitted_at=START + 2),
        new_job(priority=medium, submitted_at=START + 1),
        new_job(priority=high, submitted_at=START + 1),
        new_job(priority=medium, submitted_at=START + 1, request=Request(2, 2)),
        new_job(priority=low, submitted_at=START),
    )
    return [jobs[place] for place in (3, 1, 2, 4, 0, 5)]


class QueueContract:
    def test_alike_jobs_share_a_shape(self, store: Store) -> None:
        request = Request(2000, 4096, 1000, "H200", 2)
        first, second = submit(
            store, new_job(request=request, executor="docker"), new_job(request=request)
        )
        third = submit_one(store, request=request, executor="docker", name="another")
        assert first.shape_id == third.shape_id != second.shape_id
        with store.read() as reader:
            shapes = {shape.id: shape for shape in reader.waiting_shapes()}
        assert shapes.keys() == {first.shape_id, second.shape_id}
        shape = shapes[first.shape_id]
        assert (shape.request, shape.executor) == (request, "docker")
        assert (shape.priority, shape.array_id, shape.wait) == (Priority.MEDIUM, None, None)
        assert (shape.head_job_id, shape.head_queued_at) == (first.id, first.queued_at)

    def test_an_array_is_a_shape_of_its_own(self, store: Store) -> None:
        plain, one, two = submit(
            store,
            new_job(),
            new_job(array=ArrayPlace("arr", 0, 4)),
            new_job(array=ArrayPlace("arr", 1, 4)),
        )
        assert plain.shape_id != one.shape_id == two.shape_id
        with store.read() as reader:
            [shape] = [s for s in reader.waiting_shapes() if s.id == one.shape_id]
        assert (shape.array_id, shape.array_limit) == ("arr", 4)

    def test_only_shapes_with_ready_jobs_wait(self, store: Store) -> None:
        ready = submit_one(store)
        gone = submit_one(store, request=Request(2, 2))
        submit_one(store, request=Request(3, 3), ready=False)
        store.write(lambda tx: tx.apply(scheduling(gone)))
        with store.read() as reader:
            assert [shape.id for shape in reader.waiting_shapes()] == [ready.shape_id]
            assert reader.ready_jobs(gone.shape_id, 5) == []

    def test_ready_jobs_in_order(self, store: Store) -> None:
        jobs = submit(
            store,
            new_job(submitted_at=START + 2),
            new_job(submitted_at=START),
            new_job(submitted_at=START),
            new_job(submitted_at=START + 0.000001),
            new_job(submitted_at=START - 5, ready=False, hold=True),
        )
        order = [jobs[place] for place in (1, 2, 3, 0)]
        with store.read() as reader:
            found = reader.ready_jobs(jobs[0].shape_id, 10)
            [shape] = reader.waiting_shapes()
            assert [one.job_id for one in reader.ready_jobs(shape.id, 2)] == [
                job.id for job in order[:2]
            ]
        assert [one.job_id for one in found] == [job.id for job in order]
        assert [one.ref for one in found] == [job.ref for job in order]
        assert found[0].queued_at == START
        assert (found[0].attempt_number, found[0].status) == (0, JobStatus.PENDING)
        assert shape.head_job_id == order[0].id

    def test_places_count_from_one_over_all_shapes(self, store: Store) -> None:
        """R10: high before medium before low, first come first served inside a level."""
        order = _in_three_priorities(store)
        with store.read() as reader:
            assert [reader.position(job) for job in order] == [1, 2, 3, 4, 5, 6]
        for place, job in enumerate(order):
            assert _waiting_ids(store, job) == [one.id for one in order[:place]]
        assert _waiting_ids(store, order[5], 3) == [one.id for one in order[:3]]

    def test_a_job_that_is_not_ready_has_no_place(self, store: Store) -> None:
        held = submit_one(store, ready=False, hold=True)
        active = submit_one(store)
        store.write(lambda tx: tx.apply(scheduling(active)))
        with store.read() as reader:
            assert reader.position(held) is None
            assert reader.position(read_job(store, active.id)) is None

    def test_waiting_jobs_ready_ones_first(self, store: Store) -> None:
        order = _in_three_priorities(store)
        held = submit_one(store, ready=False, hold=True, submitted_at=START - 9)
        active = submit_one(store, submitted_at=START - 9)
        store.write(lambda tx: tx.apply(scheduling(active)))
        expected = [*(job.id for job in order), held.id]
        with store.read() as reader:
            assert [job.id for job in reader.waiting_jobs(50)] == expected
            assert [job.id for job in reader.waiting_jobs(7)] == expected
            assert [job.id for job in reader.waiting_jobs(4)] == expected[:4]
            assert reader.waiting_jobs(1) == [order[0]]

    def test_the_wait_of_a_shape(self, store: Store) -> None:
        job = submit_one(store)
        reason = Reason("not_enough", {"resource": "gpu", "free": 0.5})
        store.write(lambda tx: tx.set_shape_wait(job.shape_id, reason), durable=False)
        with store.read() as reader:
            assert reader.shape_wait(job.shape_id) == reason
            assert reader.waiting_shapes()[0].wait == reason
            assert reader.shape_wait(987) is None
        store.write(lambda tx: tx.set_shape_wait(job.shape_id, None))
        with store.read() as reader:
            assert reader.shape_wait(job.shape_id) is None

    def test_a_delay_ends_when_its_time_has_come(self, store: Store) -> None:
        jobs = submit(store, *(new_job(ready=False) for _ in range(4)))
        for place, job in enumerate(jobs[:3]):
            until = START + 10 * (place + 1)
            store.write(
                lambda tx, job=job, until=until: tx.update_job(  # type: ignore[misc]
                    job.id, PENDING, not_before=until
                )
            )
        with store.read() as reader:
            assert reader.next_delayed() == START + 10
        assert store.write(lambda tx: tx.wake_delayed(START + 9.999999)) == 0
        assert store.write(lambda tx: tx.wake_delayed(START + 20)) == 2
        assert store.write(lambda tx: tx.wake_delayed(START + 20)) == 0
        assert [read_job(store, job.id).ready for job in jobs] == [True, True, False, False]
        with store.read() as reader:
            assert reader.next_delayed() == START + 30
            assert len(reader.ready_jobs(jobs[0].shape_id, 9)) == 2

    def test_no_delay(self, store: Store) -> None:
        submit_one(store)
        with store.read() as reader:
            assert reader.next_delayed() is None
        assert store.write(lambda tx: tx.wake_delayed(START * 2)) == 0

    def test_a_held_or_ended_job_is_not_woken(self, store: Store) -> None:
        held, ended = submit(store, new_job(ready=False, hold=True), new_job(ready=False))
        for job in (held, ended):
            store.write(
                lambda tx, job=job: tx.update_job(job.id, PENDING, not_before=START)  # type: ignore[misc]
            )
        store.write(lambda tx: tx.apply(scheduling(ended)))
        with store.read() as reader:
            assert reader.next_delayed() is None
        assert store.write(lambda tx: tx.wake_delayed(START + 1)) == 0
        assert not read_job(store, held.id).ready

    def test_pruning_keeps_every_shape_that_is_used(self, store: Store) -> None:
        kept, gone = submit(store, new_job(), new_job(request=Request(5, 5)))
        store.write(lambda tx: tx.apply(scheduling(kept)))
        store.write(lambda tx: tx.delete_job(gone.id))
        assert store.write(lambda tx: tx.prune_shapes()) == 1
        assert store.write(lambda tx: tx.prune_shapes()) == 0
        again = submit_one(store, request=Request(5, 5))
        assert submit_one(store).shape_id == kept.shape_id
        with store.read() as reader:
            assert again.shape_id in {shape.id for shape in reader.waiting_shapes()}

    def test_a_shape_of_a_write_that_failed_is_not_remembered(self, store: Store) -> None:
        def fail(tx: Transaction) -> None:
            tx.insert_jobs([new_job(request=Request(7, 7))])
            raise RuntimeError

        with pytest.raises(RuntimeError):
            store.write(fail)
        job = submit_one(store, request=Request(7, 7))
        with store.read() as reader:
            assert [shape.id for shape in reader.waiting_shapes()] == [job.shape_id]
