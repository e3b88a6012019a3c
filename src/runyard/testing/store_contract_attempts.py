"""Attempts, and grants that nobody gets twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from runyard.domain import errors
from runyard.domain.job import ArrayPlace, Job
from runyard.domain.resources import GpuGrant, Request
from runyard.domain.states import AttemptEnd, AttemptStatus, JobStatus, Stage
from runyard.stores.base import Store
from runyard.testing.store_samples import (
    START,
    attempt_of,
    new_job,
    place,
    read_job,
    submit,
    submit_one,
)

LIVE = frozenset({AttemptStatus.STARTING, AttemptStatus.RUNNING, AttemptStatus.STOPPING})
WHOLE = (GpuGrant("GPU-1", 0, 1000),)


def _share(milli: int) -> tuple[GpuGrant, ...]:
    return (GpuGrant("GPU-1", 0, milli),)


def _can_place(store: Store, job: Job, **grants: object) -> bool:
    try:
        store.write(lambda tx: place(tx, job, **grants))
    except errors.StaleWrite:
        return False
    return True


class AttemptContract:
    def test_an_attempt_comes_back_exactly(self, store: Store) -> None:
        job = submit_one(store)
        attempt = attempt_of(
            job,
            request=Request(500, 512, 1500, "H200", 2),
            stage=Stage.PREFETCH,
            gpus=(GpuGrant("GPU-1", 0, 1000), GpuGrant("GPU-2", 3, 500)),
            ports=(38000, 38001),
            params={"lr": 0.5},
            end=AttemptEnd.FAILED,
            exit_code=2**31 + 5,
            signal=9,
            cause="exited",
            started_at=START + 0.5,
            ended_at=START + 0.000001,
            stop_seq=3,
            plan={"resume": True},
            diagnosis={"category": "gpu_oom"},
            receipt={"signals": []},
        )
        store.write(lambda tx: tx.insert_attempt(attempt))
        with store.read() as reader:
            assert reader.attempt(attempt.attempt_id) == attempt
            assert reader.attempt("job-nothing.1") is None

    def test_the_attempts_of_a_job_first_one_first(self, store: Store) -> None:
        job, other = submit(store, new_job(), new_job())
        made = [attempt_of(job, number) for number in (10, 2, 1)]
        for attempt in [*made, attempt_of(other)]:
            store.write(lambda tx, attempt=attempt: tx.insert_attempt(attempt))  # type: ignore[misc]
        with store.read() as reader:
            assert [found.number for found in reader.attempts(job.id)] == [1, 2, 10]
            wanted = [attempt.attempt_id for attempt in made]
            assert reader.attempts_by_id([*wanted, "nothing"]) == {
                attempt.attempt_id: attempt for attempt in made
            }
            assert reader.attempts_by_id([]) == {}

    def test_an_attempt_cannot_be_made_twice(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.insert_attempt(attempt_of(job)))
        with pytest.raises(errors.StaleWrite):
            store.write(lambda tx: tx.insert_attempt(attempt_of(job)))

    def test_an_attempt_changes_only_from_what_is_expected(self, store: Store) -> None:
        job = submit_one(store)
        attempt = attempt_of(job)
        store.write(lambda tx: tx.insert_attempt(attempt))
        ended = {
            "status": AttemptStatus.ENDED,
            "stage": Stage.FINISHING,
            "end": AttemptEnd.COMPLETED,
            "exit_code": 0,
            "signal": None,
            "cause": "exited",
            "ended_at": START + 9,
            "receipt": {"proof": "echild"},
        }
        store.write(lambda tx: tx.update_attempt(attempt.attempt_id, LIVE, **ended))
        with pytest.raises(errors.StaleWrite):
            store.write(
                lambda tx: tx.update_attempt(attempt.attempt_id, LIVE, exit_code=1, cause="lost")
            )
        with pytest.raises(errors.StaleWrite):
            store.write(lambda tx: tx.update_attempt("nothing", LIVE, exit_code=1))
        with store.read() as reader:
            found = reader.attempt(attempt.attempt_id)
        assert found == replace(attempt, **ended)  # type: ignore[arg-type]

    def test_live_attempts(self, store: Store) -> None:
        jobs = submit(store, *(new_job() for _ in range(3)))
        here, there, ended = (
            attempt_of(jobs[0], node_id="here"),
            attempt_of(jobs[1], node_id="there", created_at=START + 1),
            attempt_of(jobs[2], node_id="here"),
        )
        for attempt in (here, there, ended):
            store.write(lambda tx, attempt=attempt: tx.insert_attempt(attempt))  # type: ignore[misc]
        gone = {"status": AttemptStatus.ENDED}
        store.write(lambda tx: tx.update_attempt(ended.attempt_id, LIVE, **gone))
        with store.read() as reader:
            assert reader.live_attempts() == [here, there]
            assert reader.live_attempts("there") == [there]
            assert reader.live_attempts("nowhere") == []

    def test_what_the_scheduler_sees_of_an_attempt(self, store: Store) -> None:
        job = submit_one(store, array=ArrayPlace("arr", 1), timeout_s=60.0)
        request = Request(2000, 2048, 1000, None, 1)
        attempt = store.write(
            lambda tx: place(
                tx, job, gpus=WHOLE, ports=(38000,), request=request, started_at=START
            )
        )
        with store.read() as reader:
            [active] = reader.active_attempts()
        assert (active.attempt_id, active.job_id) == (attempt.attempt_id, job.id)
        assert (active.machine_id, active.node_id) == ("machine-1", "node-1")
        assert (active.request, active.gpus, active.ports) == (request, WHOLE, (38000,))
        assert (active.array_id, active.expected_s, active.started_at) == ("arr", 60.0, START)
        gone = {"status": AttemptStatus.ENDED}
        store.write(lambda tx: tx.update_attempt(attempt.attempt_id, LIVE, **gone))
        with store.read() as reader:
            assert reader.active_attempts() == []

    def test_a_gpu_or_port_is_granted_once(self, store: Store) -> None:
        """The placement that asks for what is taken fails whole."""
        first, second, third = submit(store, new_job(), new_job(), new_job())
        assert _can_place(store, first, gpus=WHOLE, ports=(38000,))
        assert not _can_place(store, second, gpus=WHOLE)
        assert not _can_place(store, second, ports=(38001, 38000))
        assert read_job(store, second.id).status is JobStatus.PENDING
        assert _can_place(store, second, gpus=WHOLE, ports=(38000,), machine_id="machine-2")
        assert _can_place(store, third, ports=(38001,))

    def test_shares_of_a_gpu_add_up_to_one(self, store: Store) -> None:
        jobs = submit(store, *(new_job() for _ in range(4)))
        assert _can_place(store, jobs[0], gpus=_share(600))
        assert not _can_place(store, jobs[1], gpus=_share(401))
        assert _can_place(store, jobs[1], gpus=_share(400))
        assert not _can_place(store, jobs[2], gpus=_share(1))
        store.write(lambda tx: tx.release_grants(jobs[0].attempt_id(1)))
        assert not _can_place(store, jobs[2], gpus=WHOLE)
        assert _can_place(store, jobs[2], gpus=_share(300))
        assert _can_place(store, jobs[3], gpus=_share(300))

    def test_what_is_released_can_be_granted_again(self, store: Store) -> None:
        first, second = submit(store, new_job(), new_job())
        assert _can_place(store, first, gpus=WHOLE, ports=(38000,))
        store.write(lambda tx: tx.release_grants(first.attempt_id(1)))
        store.write(lambda tx: tx.release_grants(first.attempt_id(1)))
        assert _can_place(store, second, gpus=WHOLE, ports=(38000,))

    @pytest.mark.parametrize("milli", [1000, 600])
    def test_of_many_racing_for_one_gpu_exactly_one_wins(self, store: Store, milli: int) -> None:
        jobs = submit(store, *(new_job() for _ in range(10)))
        ready = threading.Barrier(10)

        def race(job: Job) -> bool:
            ready.wait(30)
            return _can_place(store, job, gpus=_share(milli))

        with ThreadPoolExecutor(10) as racers:
            assert sum(racers.map(race, jobs)) == 1
        with store.read() as reader:
            assert len(reader.live_attempts()) == 1
