"""Valid jobs, attempts and moves for the store contract; a test changes what it is about."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runyard.domain import events
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job, JobSpec, NewJob, Priority
from runyard.domain.resources import Capacity, Request
from runyard.domain.states import AttemptStatus, JobStatus, Move, move
from runyard.stores.base import Store, Transaction
from runyard.stores.base_machines import Node

_numbers = itertools.count(1)
START = 1_790_000_000.123456  # a moment that microseconds hold exactly enough


def new_job(**changes: Any) -> NewJob:
    """Fields of the spec and of the job may be given alike."""
    of_spec = {name: changes.pop(name) for name in list(changes) if name in JobSpec.__slots__}
    number = next(_numbers)
    spec = replace(JobSpec(name=f"sample {number}", command="true"), **of_spec)
    plain = NewJob(
        ref=f"job-{number:012d}",
        spec=spec,
        priority=Priority.MEDIUM,
        owner="somebody",
        submitted_at=START + number,
    )
    return replace(plain, **changes)


def submit(store: Store, *new: NewJob) -> list[Job]:
    jobs = new or (new_job(),)
    return store.write(lambda tx: tx.insert_jobs(jobs))


def submit_one(store: Store, **changes: Any) -> Job:
    [job] = submit(store, new_job(**changes))
    return job


def attempt_of(job: Job, number: int = 1, **changes: Any) -> Attempt:
    plain = Attempt(
        attempt_id=job.attempt_id(number),
        job_id=job.id,
        number=number,
        status=AttemptStatus.STARTING,
        node_id="node-1",
        machine_id="machine-1",
        boot_id="boot-1",
        executor="local",
        request=Request(1000, 1024),
        tag=2**60 + 7,
        created_at=START,
    )
    return replace(plain, **changes)


def scheduling(job: Job, **changes: Any) -> Move:
    event = Event(events.JOB_SCHEDULED, START + 1000, "scheduler")
    changes = {"ready": False, "attempt_number": 1, "scheduled_at": START + 1000, **changes}
    return move(job.id, frozenset({job.status}), JobStatus.SCHEDULED, event, **changes)


def place(tx: Transaction, job: Job, **changes: Any) -> Attempt:
    attempt = attempt_of(job, job.attempt_number + 1, **changes)
    tx.insert_attempt(attempt)
    tx.apply(scheduling(job, attempt_number=attempt.number))
    return attempt


def node(**changes: Any) -> Node:
    plain = Node(
        node_id="node-1",
        name="first",
        machine_id="machine-1",
        boot_id="boot-1",
        url="http://127.0.0.1:8765",
        epoch=1,
        capacity=Capacity(4000, 8192),
        load=None,
        executors=("local",),
        drained=False,
        heartbeat_at=START,
    )
    return replace(plain, **changes)


def read_job(store: Store, ref: str | int) -> Job:
    with store.read() as reader:
        job = reader.job(ref)
    assert job is not None
    return job


def eventually(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)
