"""Jobs: kept exactly, changed only when they are what the writer believes, deleted whole."""

from __future__ import annotations

import math
import sys
from types import MappingProxyType
from typing import Any

import pytest

from runyard.domain import errors, events
from runyard.domain.events import Event
from runyard.domain.job import ArrayPlace, Dependency, JobType, Priority
from runyard.domain.reasons import Reason
from runyard.domain.resources import GpuGrant, Request
from runyard.domain.states import WAITING, AttemptStatus, JobStatus, Stage, move
from runyard.stores.base import JobFilter, Store, Transaction
from runyard.testing.store_samples import (
    START,
    new_job,
    place,
    read_job,
    scheduling,
    submit,
    submit_one,
)

EVERY_FIELD: dict[str, Any] = {
    "name": "ResNet50 训练",
    "command": ("python", "train.py", "--say", 'it\'s "{x}" & ${HOME}\n', ""),
    "job_type": JobType.DISTRIBUTED,
    "description": "two\nlines",
    "working_dir": "/srv/a b",
    "env_vars": {"Z": "1", "A": "", "KEY": "ü"},
    "base_env": {"PATH": "/bin"},
    "image": "pytorch/pytorch:2.0",
    "executor": "docker",
    "request": Request(333, 1537, 250, "RTX 4090", 2),
    "port_names": ("tensorboard", "api"),
    "max_retries": 0,
    "retry_delays": (0.5, 60),
    "dataset_ids": (1, 2),
    "output_path": "/srv/out",
    "params": {"lr": 1e-5, "big": 2**63, "deep": {"list": [1, 1.0, True, None, "x"]}},
    "labels": {"team": "vision", "empty": ""},
    "timeout_s": 0.25,
    "grace_s": 0.0,
    "array": ArrayPlace("array-1", 0, 4),
    "service_urls": {"reward": "http://127.0.0.1:8001"},
    "extra": {"services": [{"name": "db", "port": "auto"}]},
}


class JobContract:
    def test_a_job_comes_back_exactly(self, store: Store) -> None:
        job = submit_one(store, **EVERY_FIELD)
        found = read_job(store, job.ref)
        assert found == job
        assert isinstance(found.spec.command, tuple)
        assert list(found.spec.env_vars) == ["Z", "A", "KEY"]
        kept = found.spec.params["deep"]["list"]
        assert [type(value) for value in kept] == [int, float, bool, type(None), str]

    def test_a_plain_job_comes_back_exactly(self, store: Store) -> None:
        job = submit_one(store, command='["looks", "like", "a list"]')
        assert read_job(store, job.id) == job
        assert job.status is JobStatus.PENDING
        assert job.ready
        assert job.queued_at == job.submitted_at

    def test_numbers_that_json_does_not_know(self, store: Store) -> None:
        params = {"inf": math.inf, "huge": 2**200, "none": None, "low": -(2**70)}
        params["float"] = sys.float_info.max
        job = submit_one(store, params={**params, "nan": math.nan})
        found = dict(read_job(store, job.id).spec.params)
        assert math.isnan(found.pop("nan"))
        assert found == params

    def test_mappings_of_any_kind(self, store: Store) -> None:
        frozen = MappingProxyType({"A": "1"})
        job = submit_one(store, env_vars=frozen, params=frozen, labels=frozen)
        assert read_job(store, job.id).spec.env_vars == {"A": "1"}
        assert read_job(store, job.id).spec.labels == {"A": "1"}

    def test_text_that_is_not_unicode_is_refused_whole(self, store: Store) -> None:
        for bad in ({"name": "\udcff"}, {"env_vars": {"A": "\udcff"}}):
            with pytest.raises(errors.BadRequest):
                submit(store, new_job(), new_job(**bad))
        with store.read() as reader:
            assert reader.jobs(JobFilter()).total == 0

    def test_resources_are_exact(self, store: Store) -> None:
        for milli in (1, 7, 333, 1001, 99_999, 4_096_000):
            request = Request(milli, milli, milli)
            assert read_job(store, submit_one(store, request=request).id).spec.request == request

    def test_times_are_true_to_the_microsecond(self, store: Store) -> None:
        for moment in (START, START + 0.000001, 1_790_000_000.999999, 0.000001):
            job = submit_one(store, submitted_at=moment)
            assert read_job(store, job.id).submitted_at == moment
        rounded = submit_one(store, submitted_at=1_790_000_000.1234567)
        assert rounded.submitted_at == 1_790_000_000.123457
        assert read_job(store, rounded.id) == rounded

    def test_found_by_either_id(self, store: Store) -> None:
        job = submit_one(store)
        for ref in (job.ref, job.id, str(job.id)):
            assert read_job(store, ref) == job
        with store.read() as reader:
            for ref in ("job-nothing", "", "12x", "-1", "9" * 30, "²", 10**25, "0", "' OR 1=1"):
                assert reader.job(ref) is None

    def test_ids_are_never_given_again(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.delete_job(job.id))
        assert submit_one(store).id > job.id

    def test_a_public_id_can_be_used_once(self, store: Store) -> None:
        job = submit_one(store)
        with pytest.raises(errors.Conflict):
            submit_one(store, ref=job.ref)

    def test_an_unknown_workspace_is_refused(self, store: Store) -> None:
        submit_one(store)  # its shape is remembered
        with pytest.raises(errors.BadRequest):
            submit_one(store, workspace_id=77)
        submit_one(store)

    def test_several_by_id(self, store: Store) -> None:
        jobs = submit(store, *(new_job() for _ in range(600)))
        wanted = [job.id for job in jobs]
        with store.read() as reader:
            assert sorted(job.id for job in reader.jobs_by_id([*wanted, 10**9])) == wanted
            assert [job.id for job in reader.jobs_by_id(wanted[:1])] == wanted[:1]
            assert len(reader.jobs_by_id(wanted[:9])) == 9
            assert reader.jobs_by_id([]) == []

    def test_a_move_writes_all_it_carries(self, store: Store) -> None:
        job = submit_one(store)
        event = Event(events.JOB_RETRYING, START + 5, "supervisor", "a.1")
        store.write(lambda tx: tx.apply(scheduling(job)))
        changes: dict[str, Any] = {
            "stage": Stage.PREFLIGHT,
            "progress": 12.5,
            "retry_count": 2,
            "charged": 1,
            "attempt_number": 3,
            "ready": False,
            "not_before": START + 60,
            "hold": True,
            "queued_at": START + 1,
            "scheduled_at": None,
            "started_at": START + 2,
            "completed_at": START + 3,
        }
        reason = Reason("retry_delay", {"until": START + 60})
        to = move(job.id, JobStatus.SCHEDULED, JobStatus.RETRYING, event, reason=reason, **changes)
        store.write(lambda tx: tx.apply(to))
        found = read_job(store, job.id)
        assert found.status is JobStatus.RETRYING
        assert found.reason == reason
        assert {name: getattr(found, name) for name in changes} == changes
        assert found.stage is Stage.PREFLIGHT

    def test_a_move_without_a_reason_clears_the_old_one(self, store: Store) -> None:
        job = submit_one(store, reason=Reason("queued"))
        assert read_job(store, job.id).reason == Reason("queued")
        store.write(lambda tx: tx.apply(scheduling(job)))
        assert read_job(store, job.id).reason is None

    def test_a_stale_move_changes_nothing(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.apply(scheduling(job)))
        before = read_job(store, job.id)
        with pytest.raises(errors.StaleWrite):
            store.write(lambda tx: tx.apply(scheduling(job, progress=50.0)))
        assert read_job(store, job.id) == before
        with store.read() as reader:
            assert len(reader.events(job.id)) == 2

    def test_a_move_may_expect_several_statuses(self, store: Store) -> None:
        job = submit_one(store)
        event = Event(events.JOB_CANCELLED, START, "anna")
        to = move(job.id, WAITING, JobStatus.CANCELLED, event, ready=False)
        store.write(lambda tx: tx.apply(to))
        assert read_job(store, job.id).status is JobStatus.CANCELLED

    def test_a_move_of_a_job_that_is_gone_is_stale(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.delete_job(job.id))
        with pytest.raises(errors.StaleWrite):
            store.write(lambda tx: tx.apply(scheduling(job)))

    def test_an_update_leaves_the_status_and_tells_if_asked(self, store: Store) -> None:
        job = submit_one(store)
        event = Event(events.JOB_HELD, START, "anna")
        waiting = frozenset({JobStatus.PENDING})
        store.write(
            lambda tx: tx.update_job(job.id, waiting, event, hold=True, reason=Reason("held"))
        )
        store.write(lambda tx: tx.update_job(job.id, waiting, progress=1.5))
        store.write(lambda tx: tx.update_job(job.id, waiting, event))
        found = read_job(store, job.id)
        assert (found.status, found.hold, found.progress) == (JobStatus.PENDING, True, 1.5)
        assert found.reason == Reason("held")
        with store.read() as reader:
            codes = [told.event.code for told in reader.events(job.id)]
        assert codes == ["job_submitted", "job_held", "job_held"]

    def test_a_stale_update_changes_nothing(self, store: Store) -> None:
        job = submit_one(store)
        with pytest.raises(errors.StaleWrite):
            store.write(
                lambda tx: tx.update_job(job.id, frozenset({JobStatus.RUNNING}), progress=9.0)
            )
        assert read_job(store, job.id) == job

    def test_what_cannot_be_changed_is_refused(self, store: Store) -> None:
        job = submit_one(store)
        for change in ("status", "owner", "uuid", "spec"):
            with pytest.raises(TypeError):
                store.write(
                    lambda tx, change=change: tx.update_job(  # type: ignore[misc]
                        job.id, frozenset({JobStatus.PENDING}), **{change: "x"}
                    )
                )

    def test_a_new_priority_moves_a_job_to_another_shape(self, store: Store) -> None:
        job, other = submit(store, new_job(), new_job(priority=Priority.HIGH))
        waiting = frozenset({JobStatus.PENDING})
        store.write(lambda tx: tx.update_job(job.id, waiting, priority=Priority.HIGH))
        found = read_job(store, job.id)
        assert found.priority is Priority.HIGH
        assert found.shape_id == other.shape_id != job.shape_id

    def test_counts_by_status(self, store: Store) -> None:
        jobs = submit(store, new_job(), new_job(), new_job())
        store.write(lambda tx: tx.apply(scheduling(jobs[0])))
        with store.read() as reader:
            counts = reader.count_by_status()
        assert counts[JobStatus.PENDING] == 2
        assert counts[JobStatus.SCHEDULED] == 1
        assert counts[JobStatus.FAILED] == 0

    def test_dependencies_in_both_directions(self, store: Store) -> None:
        first, second = submit(store, new_job(), new_job())
        needs = (Dependency(first.id), Dependency(second.id, "end"))
        job = submit_one(store, depends_on=needs, ready=False)
        store.write(lambda tx: tx.apply(scheduling(second)))
        with store.read() as reader:
            assert reader.dependencies(job.id) == [
                (needs[0], first.ref, JobStatus.PENDING),
                (needs[1], second.ref, JobStatus.SCHEDULED),
            ]
            assert reader.dependents(second.id) == [(job.id, Dependency(second.id, "end"))]
            assert reader.dependents(job.id) == []

    def test_a_deleted_job_leaves_nothing(self, store: Store) -> None:
        job, other = submit(store, new_job(labels={"a": "b"}), new_job(labels={"a": "b"}))
        later = submit_one(store, depends_on=(Dependency(job.id),))
        grant = GpuGrant("GPU-1", 0, 1000)
        attempt = store.write(lambda tx: place(tx, job, gpus=(grant,), ports=(38000,)))
        store.write(lambda tx: tx.delete_job(job.id))
        with store.read() as reader:
            assert reader.job(job.id) is None
            assert reader.attempt(attempt.attempt_id) is None
            assert reader.attempts(job.id) == []
            assert reader.events(job.id) == []
            assert reader.dependencies(later.id) == []
            assert [found.id for found in reader.jobs(JobFilter(labels={"a": "b"})).jobs] == [
                other.id
            ]
        # What it held is free again.
        store.write(lambda tx: place(tx, other, gpus=(grant,), ports=(38000,)))
        with pytest.raises(errors.JobNotFound):
            store.write(lambda tx: tx.delete_job(job.id))

    def test_a_job_can_be_changed_and_deleted_in_one_write(self, store: Store) -> None:
        job = submit_one(store)

        def work(tx: Transaction) -> None:
            tx.apply(scheduling(job))
            tx.delete_job(job.id)

        store.write(work)
        with store.read() as reader:
            assert reader.events() == []

    def test_a_tag_of_61_bits_is_kept(self, store: Store) -> None:
        job = submit_one(store)
        attempt = store.write(lambda tx: place(tx, job, tag=2**61 - 1))
        with store.read() as reader:
            found = reader.attempt(attempt.attempt_id)
        assert found is not None
        assert (found.tag, found.status) == (2**61 - 1, AttemptStatus.STARTING)
