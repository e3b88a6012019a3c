"""The local executor's promises about hand-overs, with a real keeper and real supervisors."""

import os
import resource
import signal
import subprocess
import threading
import time

import pytest

from engine_yard import EngineYard
from runyard.domain.states import AttemptEnd
from runyard.executors.base import ExecutorUnavailable, Launch, NewsKind, Sight, Stop
from runyard.executors.local import LocalExecutor
from runyard.supervisor import journal, keeper_client
from yards import alive, keeper_pid, keepers_of, until

FILE_LOCKS = 10  # the resource limit that carries the tag of an attempt


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data" / "attempts").mkdir(parents=True)
    return tmp_path / "data"


@pytest.fixture
def heard():
    return []


@pytest.fixture
def executor(data, heard):
    made = LocalExecutor(data, "node-1", data / "locks")
    made.open(heard.append)
    assert made.available() == (True, "")
    yield made
    made.close(keep=False)
    until(lambda: not keepers_of(data), words="the keeper leaves")


def attempt(data, number, script="true"):
    """One that leaves a mark when anything of it runs."""
    name = f"job-2222222222222222.{number}"
    mark = data / f"ran{number}"
    return mark, Launch(
        attempt_id=name,
        job_ref="job-2222222222222222",
        tag=(1 << 60) + os.getpid() * 10_000 + number,
        argv=("/bin/sh", "-c", f"echo ran >>'{mark}'; {script}"),
        env={"PATH": os.environ["PATH"]},
        cwd="/",
    )


def end_of(executor, launch):
    def ended():
        seen = executor.inspect([launch.attempt_id])[launch.attempt_id]
        return seen.end if seen.sight is Sight.ENDED else None

    return until(ended)


def exits(data, launch):
    records = journal.read(f"{data}/attempts/{launch.attempt_id}").records
    return [record["cause"] for record in records if record["kind"] == "exit"]


def test_a_refused_attempt_never_starts(executor, data):
    """A hand-over that was under way comes too late, however often it comes."""
    mark, launch = attempt(data, 1)
    assert executor.refuse(launch.attempt_id) is True
    executor.start(launch)
    executor.start(launch)
    _, other = attempt(data, 2)
    executor.start(other)  # handed over later: when it has ended, the keeper has seen the first
    assert end_of(executor, other).code == 0
    end = end_of(executor, launch)
    assert (end.cause, end.code, end.started_at) == ("never_started", None, None)
    assert not mark.exists()
    assert exits(data, launch) == ["never_started"]


def test_what_was_handed_over_cannot_be_refused(executor, data, heard):
    """Neither before it runs, nor while, nor when it has ended."""
    mark, launch = attempt(data, 1, "exec sleep 600")
    executor.start(launch)
    assert executor.refuse(launch.attempt_id) is False
    until(mark.exists)
    assert executor.refuse(launch.attempt_id) is False
    executor.stop(launch.attempt_id, Stop(1, "user", 5.0, "ann", time.time()))
    assert end_of(executor, launch).cause == "cancelled"
    assert executor.refuse(launch.attempt_id) is False
    assert exits(data, launch) == ["cancelled"]
    until(lambda: [news.kind for news in heard] == [NewsKind.STARTED, NewsKind.ENDED])


def test_asked_to_stop_before_it_was_handed_over(executor, data):
    """The request alone hands nothing over: it can still be refused."""
    mark, launch = attempt(data, 1)
    executor.stop(launch.attempt_id, Stop(1, "user", 5.0, "ann", time.time()))
    assert executor.inspect([launch.attempt_id])[launch.attempt_id].sight is Sight.ABSENT
    assert executor.refuse(launch.attempt_id) is True
    executor.start(launch)
    assert end_of(executor, launch).cause == "never_started"
    assert not mark.exists()


def test_refused_and_started_at_the_same_moment(executor, data):
    """One of the two wins, and both are told the truth."""
    attempts = [attempt(data, number) for number in range(1, 41)]
    for mark, launch in attempts:
        answers = []
        barrier = threading.Barrier(2)

        def refuse(launch=launch, answers=answers, barrier=barrier):
            barrier.wait(20)
            answers.append(executor.refuse(launch.attempt_id))

        refusing = threading.Thread(target=refuse)
        refusing.start()
        barrier.wait(20)
        executor.start(launch)
        refusing.join(20)
        end = end_of(executor, launch)
        assert (end.cause == "never_started", not mark.exists()) == (answers[0], answers[0])
        assert len(exits(data, launch)) == 1


@pytest.fixture
def without_keeper(executor, data):
    """The keeper is dead and cannot be started again; gives the way to undo that."""
    log = data / "keeper" / f"{keeper_client.generation()}.log"
    log.unlink()
    log.mkdir()
    os.kill(keeper_pid(data), signal.SIGKILL)
    until(lambda: executor.available() == (False, "keeper_unreachable"))
    return log.rmdir


def test_without_a_keeper_nothing_is_handed_over(executor, data, without_keeper):
    """What the server wrote before it noticed is settled as never started, and never runs."""
    mark, launch = attempt(data, 1)
    with pytest.raises(ExecutorUnavailable):
        executor.start(launch)
    assert executor.refuse(launch.attempt_id) is False
    assert end_of(executor, launch).cause == "never_started"
    without_keeper()
    until(lambda: executor.available() == (True, ""))
    executor.start(launch)
    _, other = attempt(data, 2)
    executor.start(other)
    assert end_of(executor, other).code == 0
    assert exits(data, launch) == ["never_started"]
    assert not mark.exists()


def test_a_job_that_could_not_be_handed_over_is_retried_for_free(data):
    """R31: recorded at once, although the server had written its journal; then it runs."""
    engine = EngineYard(data, executor=LocalExecutor(data, "node-1", data / "locks")).open()
    try:
        log = data / "keeper" / f"{keeper_client.generation()}.log"
        log.unlink()
        log.mkdir()
        os.kill(keeper_pid(data), signal.SIGKILL)
        ref = engine.submit(["true"], max_retries=0)
        until(
            lambda: (made := engine.attempts(ref)) and made[0].end,
            words=lambda: engine.attempts(ref),
        )
        assert engine.attempts(ref)[0].end is AttemptEnd.NEVER_STARTED
        log.rmdir()
        job = engine.wait(ref, "completed")
        assert job.charged == 0
        assert engine.attempts(ref)[-1].exit_code == 0
    finally:
        engine.yard.close(keep=False)
        engine.store.close()
    until(lambda: not keepers_of(data), words="the keeper leaves")


def test_what_turns_up_after_a_settled_end_is_ended(executor, data):
    """R54: supervisor and keeper are dead, so the end is proven by looking. A process that no look
    met is found by a later one."""
    mark, launch = attempt(data, 1, "exec sleep 600")
    executor.start(launch)
    until(mark.exists)
    supervisor = journal.read(f"{data}/attempts/{launch.attempt_id}").supervisor["pid"]
    keeper = keeper_pid(data)
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not alive(keeper))
    os.kill(supervisor, signal.SIGKILL)
    end = end_of(executor, launch)
    assert (end.by, end.receipt["proof"]) == ("reconciler", "scan")
    tag = (launch.tag, launch.tag)
    late = subprocess.Popen(
        ["sleep", "600"], preexec_fn=lambda: resource.setrlimit(FILE_LOCKS, tag)
    )
    try:
        assert late.wait(80) == -signal.SIGKILL
    finally:
        late.kill()
        late.wait()
