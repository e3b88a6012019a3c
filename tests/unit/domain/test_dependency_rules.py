"""What jobs that depend on others may do."""

from __future__ import annotations

import itertools

import pytest

from runyard.domain import errors, reasons
from runyard.domain.dependencies import readiness, refuse_cycles
from runyard.domain.job import Dependency
from runyard.domain.states import JobStatus


def on_success(status, ref="job-a"):
    return Dependency(1, "success"), ref, status


def on_end(status, ref="job-b"):
    return Dependency(2, "end"), ref, status


def test_no_dependencies():
    assert readiness([]) is None


def test_success_is_met_by_completed_only():
    assert readiness([on_success(JobStatus.COMPLETED)]) is None
    for status in (JobStatus.FAILED, JobStatus.CANCELLED):
        reason = readiness([on_success(status)])
        assert reason.code == reasons.DEPENDENCY_FAILED
        assert reason.params == {"job": "job-a", "status": status.value}


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED])
def test_end_is_met_by_any_end(status):
    assert readiness([on_end(status)]) is None


@pytest.mark.parametrize(
    "status",
    [
        JobStatus.PENDING,
        JobStatus.SCHEDULED,
        JobStatus.RUNNING,
        JobStatus.RETRYING,
        JobStatus.CANCELLING,
    ],
)
def test_waits_for_those_that_have_not_ended(status):
    reason = readiness([on_success(JobStatus.COMPLETED), on_success(status), on_end(status)])
    assert reason.code == reasons.DEPENDENCY
    assert reason.params == {
        "jobs": [
            {"job": "job-a", "on": "success", "status": status.value},
            {"job": "job-b", "on": "end", "status": status.value},
        ]
    }


def test_one_broken_dependency_is_enough():
    reason = readiness([on_end(JobStatus.RUNNING), on_success(JobStatus.FAILED)])
    assert reason.code == reasons.DEPENDENCY_FAILED


def test_a_chain_is_no_cycle():
    refuse_cycles({"a": ["b", "job-old"], "b": ["c"], "c": [], "d": ["a", "b"]})


@pytest.mark.parametrize(
    "depends_on", [{"a": ["a"]}, {"a": ["b"], "b": ["a"]}, {"a": ["b"], "b": ["c"], "c": ["a"]}]
)
def test_a_cycle_is_refused_and_named(depends_on):
    with pytest.raises(errors.DependencyCycle) as refused:
        refuse_cycles(depends_on)
    jobs = refused.value.params["jobs"]
    assert jobs[0] == jobs[-1]
    assert set(jobs) == set(depends_on)
    for waits, waited_for in itertools.pairwise(jobs):
        assert waited_for in depends_on[waits]
    assert " -> ".join(jobs) in refused.value.message
