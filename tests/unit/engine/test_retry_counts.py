"""What a retry costs: failures count, what is nobody's fault does not, a person starts anew."""

import pytest

from engine_yard import ANN
from runyard.domain import events
from runyard.domain.retrying import MOST_FREE
from yards import until


def counts(engine, ref):
    job = engine.job(ref)
    return job.retry_count, job.charged


def after_the_delay(engine, ref):
    engine.let_time_pass(lambda: engine.status(ref) == "running")


def lose(engine, ref):
    engine.finish(ref, None, cause="supervisor_lost")


def test_failures_are_charged_and_losses_are_free(engine):
    """R21: both make a new attempt; only the job's own failures use up its retries."""
    ref = engine.running(max_retries=2)
    engine.finish(ref, 1)
    assert engine.wait(ref, "retrying").reason.code == "retry_delay"
    assert counts(engine, ref) == (1, 1)
    after_the_delay(engine, ref)
    lose(engine, ref)
    until(lambda: engine.job(ref).attempt_number == 3)
    engine.wait(ref, "running")
    assert counts(engine, ref) == (2, 1)
    engine.finish(ref, 1)
    engine.wait(ref, "retrying")
    assert counts(engine, ref) == (3, 2)
    after_the_delay(engine, ref)
    engine.finish(ref, 1)
    engine.wait(ref, "failed")
    code, params = engine.reason(ref)
    assert (code, params["max_retries"], params["last"]["code"]) == (
        "retries_used_up",
        2,
        "exit_code",
    )
    assert counts(engine, ref) == (3, 2)
    assert [a.number for a in engine.attempts(ref)] == [1, 2, 3, 4]


def delays(engine, ref):
    """How long each retry had to wait, in whole seconds."""
    told = [stored.event for stored in engine.yard.events(ref)]
    return [int(e.params["delay_s"]) for e in told if e.code == events.JOB_RETRYING]


def test_the_delay_of_a_free_retry_grows_with_losses_in_a_row(engine):
    """R21: not with failures, nor with losses long ago."""
    ref = engine.running(max_retries=5, retry_delays=[100])
    for number, lost in enumerate((0, 0, 1, 0, 1, 1, 1, 0), start=1):
        if lost:
            lose(engine, ref)
        else:
            engine.finish(ref, 1)
        engine.let_time_pass(lambda n=number: engine.job(ref).attempt_number == n + 1)
        engine.wait(ref, "running")
    of_losses = [delay for delay in delays(engine, ref) if delay < 100]
    assert of_losses == [0, 0, 1, 3]
    assert counts(engine, ref) == (8, 4)


def test_a_retry_by_a_person_starts_anew(engine):
    """R21: retries are whole again, and a loss after it is the first in a row."""
    ref = engine.running(max_retries=1)
    engine.finish(ref, 1)
    engine.wait(ref, "retrying")
    after_the_delay(engine, ref)
    engine.finish(ref, 1)
    engine.wait(ref, "failed")
    assert counts(engine, ref) == (1, 1)
    engine.yard.retry(ref, ANN)
    engine.wait(ref, "running")
    assert counts(engine, ref) == (2, 0)
    lose(engine, ref)
    until(lambda: engine.job(ref).attempt_number == 4)
    engine.wait(ref, "running")
    assert counts(engine, ref) == (3, 0)
    assert delays(engine, ref)[-1] == 0
    engine.finish(ref, 1)
    engine.wait(ref, "retrying")
    assert counts(engine, ref) == (4, 1)


@pytest.mark.parametrize("cause", ["supervisor_lost", "never_started"])
def test_losses_without_end_are_given_up(engine, cause):
    """R21: free, but not for ever; a person may try again, and then it is free again."""
    ref = engine.running(max_retries=1)
    for number in range(1, MOST_FREE + 1):
        engine.finish(ref, None, cause=cause)
        engine.let_time_pass(lambda n=number: engine.job(ref).attempt_number == n + 1)
        engine.wait(ref, "running")
    engine.finish(ref, None, cause=cause)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == cause
    assert counts(engine, ref) == (MOST_FREE, 0)
    engine.yard.retry(ref, ANN)
    engine.wait(ref, "running")
    engine.finish(ref, None, cause=cause)
    until(lambda: engine.job(ref).attempt_number == MOST_FREE + 3)


def test_without_retries_a_loss_is_final_and_a_start_that_never_was_is_not(engine):
    """R21: max_retries 0 means that the program must not run twice."""
    lost = engine.running(max_retries=0)
    lose(engine, lost)
    engine.wait(lost, "failed")
    assert engine.reason(lost)[0] == "supervisor_lost"
    ref = engine.submit(max_retries=0)
    until(lambda: f"{ref}.1" in engine.executor.running())
    engine.executor.forget(f"{ref}.1")
    engine.executor.finish(f"{ref}.1", None, cause="never_started")
    until(lambda: engine.job(ref).attempt_number == 2)
    assert counts(engine, ref) == (1, 0)


def test_a_cancelled_job_starts_anew_as_well(engine):
    ref = engine.running(max_retries=1)
    engine.yard.cancel(ref, ANN)
    engine.wait(ref, "cancelled")
    engine.yard.retry(ref, ANN)
    engine.wait(ref, "running")
    assert counts(engine, ref) == (1, 0)
    held = engine.submit(hold=True)
    engine.yard.cancel(held, ANN)
    engine.yard.retry(held, ANN)
    engine.wait(held, "running")
    assert counts(engine, held) == (0, 0), "it had no attempt before"
