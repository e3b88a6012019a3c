"""Between a committed placement and a running attempt: whatever goes wrong there ends truly."""

import errno
import threading

import pytest

from runyard.domain.states import AttemptEnd
from runyard.engine.launch import launching
from runyard.executors.base import ExecutorUnavailable
from scripted_executor import ScriptedExecutor
from yards import until

BLOCKED = {
    "step": "make_dirs",
    "path": "/data/file/out",
    "errno": errno.ENOTDIR,
    "message": "Not a directory",
}


def test_a_start_that_can_never_succeed_is_not_repeated(engine):
    """R35: output_path that cannot be made: failed at once, and the path is named."""
    ref = engine.submit(max_retries=3)
    until(engine.executor.running)
    engine.finish(ref, None, cause="start_failed", detail=BLOCKED)
    job = engine.wait(ref, "failed", "retrying")
    assert job.status == "failed"
    assert engine.reason(ref) == ("start_failed", BLOCKED)
    assert (job.retry_count, job.charged) == (0, 0)
    [attempt] = engine.attempts(ref)
    assert (attempt.end, attempt.cause, attempt.exit_code) == ("failed", "start_failed", None)


def test_a_start_that_may_succeed_later_is_repeated(engine):
    """A full disk may have room again."""
    ref = engine.submit(max_retries=1)
    until(engine.executor.running)
    full = {**BLOCKED, "errno": errno.ENOSPC, "message": "No space left on device"}
    engine.finish(ref, None, cause="start_failed", detail=full)
    job = engine.wait(ref, "failed", "retrying")
    assert (job.status, job.charged) == ("retrying", 1)


@pytest.mark.parametrize("failure", [ExecutorUnavailable("no keeper"), OSError(28, "full")])
def test_a_hand_over_that_fails_is_recorded_at_once_and_free(engine, failure):
    """R31: the record does not wait for the next reconciling; the next try costs nothing."""
    engine.executor.failure = failure
    ref = engine.submit(max_retries=0)
    until(lambda: len(engine.attempts(ref)) >= 2, words=lambda: engine.attempts(ref))
    first = engine.attempts(ref)[0]
    assert (first.end, first.cause) == (AttemptEnd.NEVER_STARTED, "never_started")
    assert first.attempt_id in engine.executor.refused
    engine.executor.failure = None
    engine.clock.ahead += 120
    engine.yard.runtime.wake()
    job = engine.wait(ref, "running")
    assert job.charged == 0
    assert job.retry_count == len(engine.attempts(ref)) - 1
    assert list(engine.executor.launches) == [job.attempt_id()]


class BreaksAfterwards(ScriptedExecutor):
    def start(self, launch):
        super().start(launch)
        raise ExecutorUnavailable("the connection broke")


def test_a_hand_over_that_got_there_after_all_is_not_ended(make_engine, tmp_path):
    """The executor failed to say so, but the attempt runs: refuse answers False."""
    engine = make_engine(executor=BreaksAfterwards(tmp_path / "attempts"))
    ref = engine.running()
    assert engine.executor.refused == set()
    engine.finish(ref)
    engine.wait(ref, "completed")
    assert len(engine.attempts(ref)) == 1


def test_an_attempt_that_is_nowhere_never_started(engine):
    """R31: its placement is on record, its folder is not."""
    engine.executor.losing = True
    ref = engine.submit()
    attempt_id = f"{ref}.1"
    engine.look()
    assert engine.status(ref) == "scheduled", "a hand-over may be under way"
    engine.executor.losing = False
    engine.look(ahead=11)
    engine.wait(ref, "running")
    first, second = engine.attempts(ref)
    assert (first.end, first.cause) == (AttemptEnd.NEVER_STARTED, "never_started")
    assert first.receipt["proof"] == "absent"
    assert attempt_id in engine.executor.refused
    assert second.attempt_id in engine.executor.launches


def test_a_hand_over_after_it_was_given_up_starts_nothing(engine):
    """A slow thread hands over what reconciling has closed: no attempt runs twice."""
    engine.executor.gate.clear()
    submitting = threading.Thread(target=engine.submit)
    submitting.start()
    [ref] = until(engine.refs)
    engine.wait(ref, "scheduled")
    engine.look(ahead=11)
    until(lambda: f"{ref}.1" in engine.executor.refused)
    engine.executor.gate.set()
    submitting.join(60)
    engine.wait(ref, "running")
    assert list(engine.executor.launches) == [f"{ref}.2"]
    assert [attempt.end for attempt in engine.attempts(ref)] == [AttemptEnd.NEVER_STARTED, None]


def test_an_attempt_that_ran_and_is_nowhere_was_lost(engine):
    """R35: that its folder is gone does not mean that it never ran."""
    ref = engine.running(max_retries=1)
    started = engine.job(ref).started_at
    engine.executor.forget(f"{ref}.1")
    engine.look(ahead=11)
    until(lambda: len(engine.attempts(ref)) == 2)
    first = engine.attempts(ref)[0]
    assert (first.end, first.cause) == (AttemptEnd.LOST, "supervisor_lost")
    assert (first.started_at, first.exit_code, first.signal) == (started, None, None)


def test_the_same_without_retries_is_failed_and_says_so(engine):
    ref = engine.running(max_retries=0)
    engine.executor.forget(f"{ref}.1")
    engine.look(ahead=11)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == "supervisor_lost"


def test_a_checkpoint_that_takes_long_to_choose_is_waited_for(engine, monkeypatch):
    """A slow disk: reconciling looks again and again meanwhile, and nothing is started twice."""
    ref = engine.running(max_retries=3, checkpoint={"resume": "auto"})
    chosen = threading.Event()
    resuming = engine.yard.runtime.launcher.resuming
    monkeypatch.setattr(resuming, "path", lambda _job, _attempt: chosen.wait(60) and None)
    engine.finish(ref, 1)
    engine.let_time_pass(lambda: engine.job(ref).attempt_number == 2)
    for _ in range(3):
        engine.look(ahead=60)
        assert engine.status(ref) == "scheduled"
    assert f"{ref}.2" not in engine.executor.refused
    chosen.set()
    engine.wait(ref, "running")
    assert len(engine.attempts(ref)) == 2
    assert engine.job(ref).retry_count == 1


def test_one_that_is_never_chosen_is_given_up(engine, monkeypatch):
    """A disk that hangs for good: the attempt ends as never started, and is tried again."""
    ref = engine.running(max_retries=3, checkpoint={"resume": "auto"})
    chosen = threading.Event()
    launcher = engine.yard.runtime.launcher
    monkeypatch.setattr(launcher.resuming, "path", lambda _job, _attempt: chosen.wait(60) and None)
    engine.finish(ref, 1)
    engine.let_time_pass(lambda: engine.job(ref).attempt_number == 2)
    monkeypatch.setattr(launching, "CHECKING_S", 0.0)
    engine.look(ahead=60)
    until(lambda: engine.attempts(ref)[1].end is AttemptEnd.NEVER_STARTED)
    chosen.set()
