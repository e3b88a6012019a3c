"""What is past its time goes; records and outputs stay; strangers stop nothing."""

import os
import subprocess
import sys
import time

import pytest

from engine_yard import EngineYard
from runyard.engine.retention import Retention
from runyard.engine.submit.submitting import Idempotency
from runyard.executors.local import LocalExecutor
from runyard.supervisor import journal

DAY = 86400.0


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def ended_and_running(make_engine, data):
    """Two jobs of a server that is gone by now: one has ended, one has not."""
    engine = make_engine("data")
    refs = engine.running(), engine.running()
    engine.finish(refs[0])
    engine.wait(refs[0], "completed")
    engine.close()
    for ref in refs:
        (data / "outputs" / ref / "checkpoints").mkdir(parents=True)
    return refs


@pytest.fixture
def sweep(data):
    """Retention with the real executor, which needs no keeper for this; so many days later."""
    made = []

    def sweep(days=0.0, **settings):
        executor = LocalExecutor(data, "node-1", data / "locks")
        yard = EngineYard(data, executor=executor, **settings)
        made.append(yard)
        yard.clock.ahead = days * DAY
        return Retention(yard.parts).sweep()

    yield sweep
    for yard in made:
        yard.store.close()


def stray(data, name, days, text=b""):
    """A folder no record knows of, last touched so many days ago."""
    folder = data / "attempts" / name
    folder.mkdir(parents=True)
    (folder / "journal").write_bytes(text)
    then = time.time() - days * DAY
    os.utime(folder, (then, then))
    return folder


def test_folders_go_and_records_stay(ended_and_running, sweep, data, make_engine):
    """Of what has ended: outputs and checkpoints are never ours."""
    ended, running = ended_and_running
    assert sweep(days=29) == 0
    assert (data / "attempts" / f"{ended}.1" / "out.log").exists()
    assert sweep(days=31) == 1
    assert not (data / "attempts" / f"{ended}.1").exists()
    assert (data / "attempts" / f"{running}.1").exists(), "it has not ended, however old it is"
    assert (data / "outputs" / ended / "checkpoints").exists()
    after = make_engine("data", opened=False)
    assert after.status(ended) == "completed"
    assert after.attempts(ended)[0].exit_code == 0
    assert after.yard.explain(ended)["log_tail"] == []


@pytest.mark.usefixtures("ended_and_running")
def test_keep_days_is_a_setting(sweep):
    assert sweep(days=1, keep_days=2) == 0
    assert sweep(days=3, keep_days=2) == 1


def test_strangers_stop_nothing_and_are_left_alone(ended_and_running, sweep, data, tmp_path):
    """Files, names no attempt can have, a link to elsewhere."""
    attempts = data / "attempts"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis").touch()
    (attempts / "README").touch()
    (attempts / "job-2222222222222222.1").symlink_to(elsewhere)
    for name in ("lost+found", "a copy of it", ".snapshot", "x" * 201, "line\nbreak"):
        (attempts / name).mkdir()
    before = set(os.listdir(attempts))
    ended, _ = ended_and_running
    assert sweep(days=31) == 1
    assert set(os.listdir(attempts)) == before - {f"{ended}.1"}
    assert (elsewhere / "thesis").exists()


def test_a_stray_folder_is_kept_for_a_day(sweep, data):
    """Its record may be in a backup that is being restored."""
    old = stray(data, "job-2222222222222222.1", days=1.1)
    torn = stray(data, "job-2222222222222222.2", days=3, text=b"deadbeef {not whole")
    young = stray(data, "job-2222222222222222.3", days=0.9)
    assert sweep() == 2
    assert (old.exists(), torn.exists(), young.exists()) == (False, False, True)
    assert sweep(days=1) == 1
    assert not young.exists()


HOLD = """
import os, sys
from runyard.supervisor import liveness
assert liveness.hold(os.open(sys.argv[1], os.O_RDWR))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_stray_that_lives_is_left_alone(sweep, data):
    """R41: somebody's supervisor holds its lock; nothing of it is touched."""
    folder = stray(data, "job-2222222222222222.1", days=5)
    (folder / "journal").unlink()
    journal.create(str(folder), {"attempt_id": folder.name, "tag": 1})
    then = time.time() - 5 * DAY
    os.utime(folder, (then, then))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder / "journal"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        assert sweep() == 0
        assert journal.read(str(folder)).exit is None
    finally:
        holder.communicate()
    assert sweep() == 1


def test_a_request_is_remembered_for_a_day(engine):
    """So long its key stands for the same jobs, then for a new request."""
    key = Idempotency("nightly", "digest")
    first = engine.submit(hold=True, idempotency=key)
    retention = Retention(engine.parts)
    engine.clock.ahead = 0.9 * DAY
    retention.sweep()
    assert engine.submit(hold=True, idempotency=key) == first
    engine.clock.ahead = 1.1 * DAY
    retention.sweep()
    assert engine.submit(hold=True, idempotency=key) != first


def test_more_than_one_batch(sweep, data):
    for number in range(1, 604):
        stray(data, f"job-2222222222222222.{number}", days=2)
    assert sweep() == 603
    assert os.listdir(data / "attempts") == []
