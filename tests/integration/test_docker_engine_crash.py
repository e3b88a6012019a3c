"""The engine is killed and comes back while containers run."""

from __future__ import annotations

import signal

import pytest

from docker_engine import IMAGE
from image_jobs import LOOP, SHARE, living, settings_for, up, up_until_told
from runyard.supervisor import journal
from yards import kill9, until

pytestmark = pytest.mark.root


@pytest.fixture
def engine(own_docker_engine):
    return own_docker_engine


@pytest.fixture
def yard(make_yard, engine):
    env = settings_for(engine) | {"RUNYARD_RECONCILE_INTERVAL": "1"}
    return make_yard(env=env).start()


def test_log_engine_output_when_daemon_down(yard, engine):
    """R34, R54: code and last line are kept, which an engine's own log would have lost."""
    ref, go = up_until_told(yard, 9)
    engine.kill9()
    go.touch()
    until(lambda: not living(ref), 60)
    assert yard.status(ref) == "running"
    engine.start_again()
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"] == {"code": "exit_code", "params": {"code": 9}}
    assert yard.logs(ref)[-1] == "last"
    assert engine.containers() == []


def test_cancelled_while_the_engine_is_away(yard, engine):
    """R41: nothing is told to be gone before that is proven; then it is."""
    ref = up(yard, f"trap '' TERM; {LOOP}", grace_s=0.5)
    engine.kill9()
    answer = yard.cancel(ref, wait=1)
    assert answer.body["status"] == "cancelling"
    engine.start_again()
    yard.wait(ref, "cancelled", seconds=60)
    assert engine.containers() == []


def test_the_runner_is_killed_while_the_engine_is_away(yard, engine):
    """R41, R43: the end waits for an engine that can be asked. A code is told only where the
    container had one of its own: an engine that comes back may end what it finds."""
    ref = up(yard, LOOP, max_retries=0)
    engine.kill9()
    kill9(journal.read(f"{yard.data}/attempts/{ref}.1").job)
    until(lambda: journal.read(f"{yard.data}/attempts/{ref}.1").exit, 60)
    assert yard.status(ref) == "running"
    engine.start_again()
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] in ("supervisor_lost", "exit_code")
    assert yard.attempts(ref)[0]["exit_code"] in (None, 128 + signal.SIGTERM)
    assert engine.containers() == []


def test_no_job_starts_without_an_engine(yard, engine):
    """It waits, with the reason, and starts when the engine is back."""
    engine.kill9()
    until(lambda: not yard.ask("/nodes")[0]["executors"].count("docker"), 60)
    ref = yard.submit("true", image=IMAGE, **SHARE)
    until(lambda: yard.job(ref)["reason"]["code"] == "executor_unavailable", 60)
    engine.start_again()
    yard.wait(ref, "completed", seconds=60)
