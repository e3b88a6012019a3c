"""Jobs with an image, by a real server: the same on a real Docker and a real podman.

What every engine must do at least has names of its own, in test_image_engines.py."""

from __future__ import annotations

import os
import signal

import pytest

from image_jobs import LOOP, folder, settings_for, up
from runyard.supervisor import journal, process_table
from yards import keeper_pid, keepers_of, kill9, until

pytestmark = pytest.mark.root


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request):
    return request.getfixturevalue(f"{request.param}_engine")


@pytest.fixture
def yard(make_yard, engine):
    yield make_yard(env=settings_for(engine)).start()
    assert engine.containers() == []


def test_it_gets_what_it_asked_for(yard, engine):
    """R34: memory, CPUs, shared memory; no new rights, no privileges, no engine inside."""
    script = "grep -i nonewprivs /proc/self/status; df -m /dev/shm | tail -n 1; " + LOOP
    ref = up(yard, script, cpu_cores=0.5, memory_gb=0.25)
    [container] = engine.containers()
    seen = engine.inspect(container)
    host = seen["HostConfig"]
    assert (host["Memory"], host["NanoCpus"]) == (256 * 1024**2, 500_000_000)
    assert (host["Privileged"], host["NetworkMode"]) == (False, "none")
    assert seen["Config"]["Labels"]["runyard.attempt"] == f"{ref}.1"
    assert not [m for m in seen["Mounts"] if engine.socket_path.startswith(m["Source"])]
    privileges, shared = yard.logs(ref)[:2]
    assert privileges.split() == ["NoNewPrivs:", "1"]
    assert shared.split()[1] == "256"
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_its_processes_are_known_from_outside(yard, engine):
    """R42: what runs inside has the attempt's tag, whatever it does to its environment; an
    innocent container of the same engine has none."""
    ref = up(yard, f"env -i sh -c '{LOOP}' & wait")
    record = journal.read(str(folder(yard, ref)))
    [container] = engine.containers()
    first = engine.inspect(container)["State"]["Pid"]
    inside = process_table.descendants(first)
    assert len(inside) >= 2
    # The engine's own init may be the first process; it is not the job's.
    assert {process_table.tag(pid) for pid in inside} == {record.spec["tag"]}
    with engine.container("sleep", "600") as innocent:
        pid = engine.inspect(innocent)["State"]["Pid"]
        assert process_table.tag(pid) is None
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_a_kill_by_somebody_else_is_not_called_memory(yard, engine):
    """R34: with a limit, 137 alone says nothing about memory."""
    ref = up(yard, LOOP, memory_gb=0.25)
    [container] = engine.containers()
    engine.docker("kill", container)
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "exit_code"
    assert job["reason"]["params"] == {"code": 137, "shell_signal": "SIGKILL"}


def test_cancel_reaches_the_whole_group(yard):
    """R41: also what a shell started, and its own exit code is kept."""
    ref = up(
        yard, f"trap 'wait; exit 5' TERM; sh -c \"trap 'echo inner; exit' TERM; {LOOP}\" & wait"
    )
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert "inner" in yard.logs(ref)
    assert yard.attempts(ref)[0]["exit_code"] == 5


def test_everybody_who_watched_is_killed(yard, engine):
    """R43, R54: server, keeper, supervisor and runner; the next server ends the container."""
    ref = up(yard, f"trap '' TERM; {LOOP}", max_retries=0)
    records = journal.read(str(folder(yard, ref)))
    yard.kill9()
    os.kill(keeper_pid(yard.data), signal.SIGKILL)
    kill9(records.supervisor)
    until(lambda: len(keepers_of(yard.data)) == 0)
    yard.start()
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "supervisor_lost"
    assert yard.attempts(ref)[0]["exit_code"] is None
    assert engine.containers() == []
