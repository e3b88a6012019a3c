"""The main promises once more for somebody without any rights."""

import os
import signal

import pytest

from runyard.supervisor import journal
from yards import RunningYard, Truth, keeper_pid, kill9, until


@pytest.fixture
def home(person):
    made = person.folder(f"unprivileged-{os.urandom(4).hex()}")
    yield made
    until(lambda: person.processes() == [], words=lambda: person.processes())


@pytest.fixture
def yard(person, home):
    yard = RunningYard(
        home / "yard", data_dir=home / "data", python=person.python, becoming=person.becoming
    )
    yard.folder.mkdir()
    os.chown(yard.folder, person.uid, -1)
    yield yard.start()
    yard.stop()


@pytest.fixture
def truth(person, home):
    truth = Truth(home / "truth")
    os.chown(truth.path, person.uid, -1)
    yield truth
    truth.close()


def test_jobs_run_as_the_person(yard, person):
    """R8, R40: with the person's rights and home, retried, told truly."""
    ref = yard.submit(["sh", "-c", "id -u; echo $HOME"])
    yard.wait(ref, "completed")
    uid, home = yard.logs(ref)
    assert int(uid) == person.uid
    if person.becoming:
        assert home == str(person.home)
    failing = yard.submit(["sh", "-c", "exit 3"], max_retries=1)
    yard.wait(failing, "failed")
    assert [attempt["exit_code"] for attempt in yard.attempts(failing)] == [3, 3]
    assert yard.ask(f"/jobs/{ref}/receipt")["proof"] == "echild"


def test_cancelled_trees_are_gone(yard, truth):
    """R8, R40 TC-07: daemons without an environment and those that ignore TERM included."""
    tree = (
        f"trap '' TERM; exec 9>{truth.path}; setsid sleep 600 & "
        "(setsid env -i sh -c 'echo up >&9; exec sleep 600' &); exec sleep 600"
    )
    ref = yard.submit(["sh", "-c", tree], grace_s=1)
    until(lambda: truth.held() and truth.data)
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert not truth.held()


def test_adopted_and_swept(yard, truth):
    """R41, R42: the server is killed; then server, keeper and supervisor."""
    tree = (
        f"exec 9>{truth.path}; (setsid env -i sh -c 'echo up >&9; exec sleep 600' &); "
        "exec sleep 600"
    )
    ref = yard.submit(["sh", "-c", tree], grace_s=1)
    until(lambda: truth.held() and truth.data)
    yard.wait(ref, "running")
    yard.kill9()
    yard.start()
    assert yard.wait(ref, "running")["attempt"]["number"] == 1
    yard.kill9()
    os.kill(keeper_pid(yard.data), signal.SIGKILL)
    kill9(journal.read(str(yard.data / "attempts" / f"{ref}.1")).supervisor)
    assert truth.held()
    yard.start()
    assert yard.wait(ref, "failed")["reason"]["code"] == "supervisor_lost"
    assert not truth.held()
