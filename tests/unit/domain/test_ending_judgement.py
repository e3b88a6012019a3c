"""What an end means: DESIGN section 5."""

from __future__ import annotations

import pytest

from runyard.domain import reasons, states
from runyard.domain.ending import judge, signal_name
from runyard.domain.events import JOB_COMPLETED, Event
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptEnd, JobStatus

SCHEDULED, RUNNING, CANCELLING = JobStatus.SCHEDULED, JobStatus.RUNNING, JobStatus.CANCELLING


def end(status=RUNNING, code=None, signal=None, cause="exited", **more):
    return judge(status, code=code, signal=signal, cause=cause, **more)


@pytest.mark.parametrize(
    ("code", "signal", "cause"),
    [
        (0, None, "exited"),
        (None, 9, "cancelled"),
        (1, None, "exited"),
        (None, None, "never_started"),
    ],
)
def test_cancelling_always_gives_cancelled(code, signal, cause):
    verdict = end(CANCELLING, code, signal, cause)
    assert (verdict.end, verdict.to) == (AttemptEnd.CANCELLED, JobStatus.CANCELLED)
    assert verdict.reason is None  # the one written with the request stays


def test_a_shutdown_says_so():
    assert end(CANCELLING, 0, cause="cancelled", stop_cause="shutdown").reason == Reason(
        "shutdown"
    )


@pytest.mark.parametrize("status", [SCHEDULED, RUNNING])
def test_exit_0_is_completed(status):
    """R35."""
    verdict = end(status, code=0)
    assert (verdict.end, verdict.to, verdict.reason) == (
        AttemptEnd.COMPLETED,
        JobStatus.COMPLETED,
        None,
    )


def test_other_exit_codes():
    verdict = end(code=3)
    assert (verdict.end, verdict.to) == (AttemptEnd.FAILED, JobStatus.FAILED)
    assert verdict.reason == Reason(reasons.EXIT_CODE, {"code": 3})


def test_a_shells_exit_code_shows_the_signal_below():
    assert end(code=137).reason.params == {"code": 137, "shell_signal": "SIGKILL"}
    assert end(code=255).reason.params == {"code": 255}


def test_signals():
    assert end(signal=11).reason == Reason(reasons.SIGNAL, {"signal": 11, "name": "SIGSEGV"})
    assert signal_name(200) is None


def test_never_started():
    verdict = end(SCHEDULED, cause="never_started")
    assert (verdict.end, verdict.to) == (AttemptEnd.NEVER_STARTED, JobStatus.FAILED)
    assert verdict.reason.code == reasons.NEVER_STARTED


def test_missing_program_and_directory():
    detail = {"errno": 2, "path": "/no"}
    assert end(SCHEDULED, cause="exec_failed", detail=detail).reason == Reason(
        reasons.EXEC_FAILED, detail
    )
    verdict = end(SCHEDULED, cause="cwd_missing", detail={"path": "/no"})
    assert (verdict.end, verdict.reason.code) == (AttemptEnd.FAILED, reasons.CWD_MISSING)


def test_isolation_that_cannot_be_had():
    detail = {"errno": 1, "path": "PID namespace", "message": "Operation not permitted"}
    verdict = end(SCHEDULED, cause="isolation_unavailable", detail=detail)
    assert (verdict.end, verdict.to) == (AttemptEnd.FAILED, JobStatus.FAILED)
    assert verdict.reason == Reason(reasons.ISOLATION_UNAVAILABLE, detail)


@pytest.mark.parametrize("code", [0, 1, None])
def test_a_time_out_is_one_also_after_exit_0(code):
    verdict = end(code=code, cause="timeout", stop_cause="timeout", detail={"limit_s": 5})
    assert (verdict.end, verdict.to) == (AttemptEnd.TIMED_OUT, JobStatus.FAILED)
    assert verdict.reason == Reason(reasons.TIMED_OUT, {"limit_s": 5})


def test_a_stop_nobody_asked_for_is_no_success():
    verdict = end(code=0, cause="cancelled", stop_cause="rule")
    assert (verdict.end, verdict.to) == (AttemptEnd.FAILED, JobStatus.FAILED)
    assert verdict.reason == Reason(reasons.STOPPING, {"cause": "rule"})


def test_a_supervisor_told_to_end_is_the_hosts_trouble():
    verdict = end(signal=15, cause="cancelled", stop_cause="supervisor_term")
    assert (verdict.end, verdict.to) == (AttemptEnd.LOST, JobStatus.FAILED)


@pytest.mark.parametrize("cause", ["supervisor_lost", "lost"])
def test_supervisor_lost(cause):
    verdict = end(signal=9, cause=cause)
    assert (verdict.end, verdict.reason.code) == (AttemptEnd.LOST, reasons.SUPERVISOR_LOST)


@pytest.mark.parametrize("cause", ["host_restarted", "lost_host_restart"])
def test_host_restarted(cause):
    verdict = end(cause=cause)
    assert (verdict.end, verdict.reason.code) == (AttemptEnd.LOST, reasons.HOST_RESTARTED)


def test_an_unknown_exit_code_is_never_taken_for_success():
    verdict = end(code=None, signal=None)
    assert (verdict.end, verdict.to) == (AttemptEnd.LOST, JobStatus.FAILED)


@pytest.mark.parametrize("stop_cause", [None, "user", "shutdown", "lease"])
def test_a_cancelled_end_of_a_job_that_does_not_say_cancelling_goes_through_it(stop_cause):
    verdict = end(RUNNING, signal=15, cause="cancelled", stop_cause=stop_cause)
    assert verdict.to is JobStatus.CANCELLED
    at = RUNNING
    for step in (*verdict.through, verdict.to):
        states.move(1, at, step, Event(JOB_COMPLETED, 0.0, "test"))
        at = step


def test_a_gpu_taken_by_another_server_is_a_start_that_never_was():
    """R55: it is tried again without being charged."""
    detail = {"path": "/locks/GPU-1", "owner": "node-2"}
    verdict = end(SCHEDULED, cause="gpu_locked", detail=detail)
    assert verdict.end is AttemptEnd.NEVER_STARTED
    assert verdict.reason == Reason("gpu_locked", detail)


@pytest.mark.parametrize(
    ("cause", "status", "detail", "params"),
    [
        ("oom", {"signal": 9}, {"limit_mb": 64, "memory_peak_mb": 63}, {"name": "SIGKILL"}),
        ("oom_child", {"code": 3}, {"oom_kills": 1}, {"code": 3}),
        ("oom_soft", {"signal": 15}, {"limit_mb": 64, "used_mb": 99}, {"signal": 15}),
        ("oom_soft", {"code": 0}, {"limit_mb": 64, "used_mb": 99}, {"code": 0}),
        ("killed_externally", {"signal": 15}, {}, {"name": "SIGTERM"}),
        ("crashed", {"signal": 11}, {}, {"name": "SIGSEGV"}),
    ],
)
def test_ends_of_which_more_is_known(cause, status, detail, params):
    """R18: memory, a crash and a stranger's signal are told apart."""
    verdict = end(**status, cause=cause, detail=detail, stop_cause=None)
    assert (verdict.end, verdict.to) == (AttemptEnd.FAILED, JobStatus.FAILED)
    assert verdict.reason.code == cause
    assert verdict.reason.params.items() >= {**detail, **params}.items()


def test_forks_that_were_refused_are_told_with_the_exit_code():
    verdict = end(code=9, detail={"forks_refused": 2, "memory_peak_mb": 5})
    assert verdict.reason == Reason(reasons.EXIT_CODE, {"code": 9, "forks_refused": 2})
