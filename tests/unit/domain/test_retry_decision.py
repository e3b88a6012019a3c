"""Retries: what is tried again, when, and what it counts."""

from __future__ import annotations

import errno

import pytest

from runyard.domain import reasons
from runyard.domain.reasons import Reason
from runyard.domain.retrying import MOST_FREE, GiveUp, Retry, decide, delay_reason
from runyard.domain.states import AttemptEnd

WHY = Reason(reasons.EXIT_CODE, {"code": 1})


def after(end=AttemptEnd.FAILED, cause="exited", *, charged=0, max_retries=3, reason=WHY, **more):
    return decide(end, cause, charged=charged, max_retries=max_retries, reason=reason, **more)


def test_delays_grow_and_the_last_repeats():
    """R21."""
    assert [after(charged=n, max_retries=9) for n in range(5)] == [
        Retry(delay, charged=True) for delay in (60.0, 300.0, 900.0, 900.0, 900.0)
    ]


def test_own_delays_and_jitter():
    assert after(delays=(5.0,)) == Retry(5.0, charged=True)
    assert after(delays=(10.0,), jitter=1.0) == Retry(11.0, charged=True)
    assert after(delays=()) == Retry(0.0, charged=True)


def test_retries_used_up():
    """R21, TC-06."""
    assert after(charged=3) == GiveUp(
        Reason(
            reasons.RETRIES_USED_UP,
            {"max_retries": 3, "last": {"code": "exit_code", "params": {"code": 1}}},
        )
    )
    assert after(charged=3, reason=None).reason.params["last"] is None


def test_without_retries_the_failure_itself_is_the_reason():
    assert after(max_retries=0) == GiveUp(WHY)


def test_a_time_out_is_charged():
    assert after(AttemptEnd.TIMED_OUT, "timeout") == Retry(60.0, charged=True)


def test_never_started_is_free_even_without_retries():
    assert after(AttemptEnd.NEVER_STARTED, "never_started", max_retries=0) == Retry(0.0, False)
    assert after(AttemptEnd.NEVER_STARTED, "never_started", charged=3) == Retry(0.0, False)


def test_lost_is_free_unless_no_retries_are_wanted():
    assert after(AttemptEnd.LOST, "supervisor_lost", charged=3) == Retry(0.0, charged=False)
    assert after(AttemptEnd.LOST, "supervisor_lost", max_retries=0) == GiveUp(WHY)


def test_free_retries_slow_down_and_end():
    delays = [after(AttemptEnd.NEVER_STARTED, "never_started", free=n).delay_s for n in range(9)]
    assert delays == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 60.0, 60.0, 60.0]
    assert after(AttemptEnd.LOST, "supervisor_lost", free=MOST_FREE) == GiveUp(WHY)


@pytest.mark.parametrize("cause", ["cwd_missing", "isolation_unavailable", "gpu_runtime_missing"])
def test_what_the_machine_does_not_have_is_not_retried(cause):
    assert after(cause=cause) == GiveUp(WHY)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.E2BIG])
def test_a_program_that_cannot_be_executed_is_not_retried(number):
    assert after(cause="exec_failed", detail={"errno": number}) == GiveUp(WHY)


@pytest.mark.parametrize("detail", [{"errno": errno.EAGAIN}, {}, None])
def test_a_passing_failure_to_execute_is_retried(detail):
    assert after(cause="exec_failed", detail=detail) == Retry(60.0, charged=True)


def test_the_wait_for_a_retry_is_explained():
    assert delay_reason(WHY, 123.0, 2) == Reason(
        reasons.RETRY_DELAY,
        {"until": 123.0, "attempt": 2, "cause": {"code": "exit_code", "params": {"code": 1}}},
    )
    assert delay_reason(None, 123.0, 2).params["cause"] is None
