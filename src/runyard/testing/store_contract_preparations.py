"""Preparations of jobs: kept exactly, found while they live, and where what they brought is."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.domain import errors
from runyard.domain.job import Job
from runyard.domain.preparation import Preparation
from runyard.domain.reasons import PREPARING, Reason
from runyard.domain.states import LIVE, AttemptStatus, Stage
from runyard.stores.base import Store
from runyard.testing.store_samples import START, new_job, submit, submit_one


def _preparation(job: Job, number: int = 1, **changes: Any) -> Preparation:
    given = {
        "preparation_id": f"{job.ref}.p{number}",
        "job_id": job.id,
        "number": number,
        "status": AttemptStatus.STARTING,
        "stage": Stage.PREFETCH,
        "node_id": "node-1",
        "machine_id": "machine-1",
        "boot_id": "boot-1",
        "tag": 2**60 + 7,
        "created_at": START,
    }
    return Preparation(**{**given, **changes})


def _ended(job: Job, number: int = 1, **changes: Any) -> Preparation:
    return _preparation(job, number, status=AttemptStatus.ENDED, **{"exit_code": 0, **changes})


def _keep(store: Store, *found: Preparation) -> None:
    for one in found:
        store.write(lambda tx, one=one: tx.insert_preparation(one))  # type: ignore[misc]


class PreparationContract:
    def test_a_preparation_comes_back_exactly(self, store: Store) -> None:
        job = submit_one(store, image="trainer:1", pull=True)
        told = {"code": "network", "uri": "trainer:1", "message": "no such host"}
        second = _ended(job, 2, stage=Stage.PULL, exit_code=1, outcome=told, ended_at=START)
        _keep(store, second, _preparation(job))
        with store.read() as reader:
            assert reader.preparation(second.preparation_id) == second
            assert reader.preparation("nothing.p1") is None
            assert [one.number for one in reader.preparations(job.id)] == [1, 2]
            assert [one.number for one in reader.live_preparations("node-1")] == [1]
            assert reader.live_preparations("node-2") == []
            found = reader.job(job.id)
            assert found is not None
            assert found.spec.pull is True

    def test_a_preparation_that_ended_is_not_written_again(self, store: Store) -> None:
        job = submit_one(store)
        _keep(store, _preparation(job))
        name, ended = f"{job.ref}.p1", AttemptStatus.ENDED
        store.write(lambda tx: tx.update_preparation(name, LIVE, status=ended, exit_code=0))
        with pytest.raises(errors.StaleWrite):
            store.write(lambda tx: tx.update_preparation(name, LIVE, status=ended))
        with store.read() as reader:
            assert reader.live_preparations() == []

    def test_who_waits_for_a_preparation(self, store: Store) -> None:
        waits = Reason(PREPARING)
        first = new_job(ready=False, reason=waits)
        other = new_job(ready=False, reason=Reason("held"))
        unprepared, *_ = submit(store, first, other, new_job())
        with store.read() as reader:
            assert [job.ref for job in reader.unprepared_jobs()] == [unprepared.ref]

    def test_files_bind_a_job_to_a_node_and_an_image_does_not(self, store: Store) -> None:
        fetched, pulled, here, failed = submit(store, *(new_job() for _ in range(4)))
        _keep(
            store,
            _ended(fetched, node_id="node-2"),
            _ended(pulled, node_id="node-2", stage=Stage.PULL),
            _ended(here),
            _ended(failed, node_id="node-2", exit_code=1),
        )
        with store.read() as reader:
            assert reader.prepared_elsewhere("node-1") == {fetched.id}
