"""The one door for changes of state, and the words of errors."""

from __future__ import annotations

import itertools

import pytest

from runyard.domain import errors, states
from runyard.domain.events import JOB_STARTED, Event
from runyard.domain.job import Job, JobSpec, Priority
from runyard.domain.states import ACTIVE, ENDED, MOVES, WAITING, JobStatus

EVENT = Event(JOB_STARTED, 1.0, "test")


@pytest.mark.parametrize(("at", "to"), list(itertools.product(JobStatus, JobStatus)))
def test_only_the_table_opens_the_door(at, to):
    """R31."""
    if to in MOVES[at]:
        made = states.move(1, at, to, EVENT, stage=None)
        assert (made.expect, made.to, made.changes) == (frozenset({at}), to, {"stage": None})
    else:
        with pytest.raises(errors.IllegalMove):
            states.move(1, at, to, EVENT)


@pytest.mark.parametrize("at", list(JobStatus))
def test_only_ended_jobs_are_retried_by_a_person(at):
    if at in ENDED:
        assert states.move(1, at, JobStatus.PENDING, EVENT, by_retry=True).to is JobStatus.PENDING
    else:
        with pytest.raises(errors.IllegalMove):
            states.move(1, at, JobStatus.PENDING, EVENT, by_retry=True)


def test_every_expected_status_must_be_legal():
    with pytest.raises(errors.IllegalMove):
        states.move(
            1, frozenset({JobStatus.RUNNING, JobStatus.PENDING}), JobStatus.COMPLETED, EVENT
        )


def test_every_status_is_waiting_active_or_ended():
    groups = [WAITING, ACTIVE, ENDED]
    assert frozenset().union(*groups) == frozenset(JobStatus)
    assert sum(map(len, groups)) == len(JobStatus)


def test_cancelling_only_ends_cancelled():
    assert MOVES[JobStatus.CANCELLING] == {JobStatus.CANCELLED}


def test_errors_word_themselves_and_keep_what_is_missing():
    assert errors.JobNotFound(job="job-x").message == "There is no job job-x."
    assert errors.JobNotFound().message == "There is no job {job}."
    assert errors.BadRequest("own words", a=1).params == {"a": 1}


def test_attempt_ids():
    job = Job(
        1, "job-x", JobSpec("n", "true"), JobStatus.PENDING, Priority.LOW, "ann", 0, 0, 1,
        attempt_number=2,
    )  # fmt: skip
    assert (job.attempt_id(), job.attempt_id(5)) == ("job-x.2", "job-x.5")
