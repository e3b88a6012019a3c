"""What a store promises about the leases of jobs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from runyard.domain import errors
from runyard.stores.base import Lease, Store
from runyard.testing.store_samples import START, new_job, submit, submit_one


class LeaseContract:
    def test_a_lease_is_put_read_replaced_and_dropped(self, store: Store) -> None:
        job = submit_one(store)
        with store.read() as reader:
            assert reader.lease(job.id) is None
            assert reader.leases() == []
            assert reader.next_lease_end() is None
        store.write(lambda tx: tx.put_lease(Lease(job.id, START)))
        store.write(lambda tx: tx.put_lease(Lease(job.id, START + 5)), durable=False)
        with store.read() as reader:
            assert reader.lease(job.id) == Lease(job.id, START + 5)
            assert reader.next_lease_end() == START + 5
        assert store.write(lambda tx: tx.drop_lease(job.id))
        assert not store.write(lambda tx: tx.drop_lease(job.id))
        with store.read() as reader:
            assert reader.leases() == []

    def test_the_expired_ones_in_order(self, store: Store) -> None:
        jobs = submit(store, new_job(), new_job(), new_job())
        for job, ahead in zip(jobs, (20, 10, 30), strict=True):
            store.write(lambda tx, a=ahead, j=job: tx.put_lease(Lease(j.id, START + a)))  # type: ignore[misc]
        with store.read() as reader:
            assert reader.next_lease_end() == START + 10
            assert [lease.job_id for lease in reader.leases()] == [
                jobs[1].id,
                jobs[0].id,
                jobs[2].id,
            ]
            assert reader.expired_leases(START + 9) == []
            assert [lease.job_id for lease in reader.expired_leases(START + 20)] == [
                jobs[1].id,
                jobs[0].id,
            ]

    def test_one_that_was_renewed_is_not_dropped_as_expired(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.put_lease(Lease(job.id, START + 10)))
        assert not store.write(lambda tx: tx.drop_lease(job.id, expired_by=START + 9))
        with store.read() as reader:
            assert reader.lease(job.id) is not None
        assert store.write(lambda tx: tx.drop_lease(job.id, expired_by=START + 10))
        assert not store.write(lambda tx: tx.drop_lease(job.id, expired_by=START + 10))

    def test_of_many_who_see_it_expired_one_drops_it(self, store: Store) -> None:
        """With several servers any of them may end it, and only one does."""
        job = submit_one(store)
        store.write(lambda tx: tx.put_lease(Lease(job.id, START)))
        ready = threading.Barrier(6)

        def drop(_: int) -> bool:
            ready.wait(30)
            return store.write(lambda tx: tx.drop_lease(job.id, expired_by=START))

        with ThreadPoolExecutor(6) as servers:
            assert sorted(servers.map(drop, range(6))) == [False] * 5 + [True]

    def test_it_goes_with_its_job_and_needs_one(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.put_lease(Lease(job.id, START)))
        store.write(lambda tx: tx.delete_job(job.id))
        with store.read() as reader:
            assert reader.leases() == []
        with pytest.raises(errors.BadRequest):
            store.write(lambda tx: tx.put_lease(Lease(job.id, START)))
