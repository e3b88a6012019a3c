"""A supervisor may be killed at any instant: no process survives, no exit code is invented, and
with the keeper above it none is lost (R41, R42)."""

import os
import signal

import pytest
from keeper_yard import Alive, wait_for

from runyard.supervisor import keeper_client, liveness, reconcile

BEFORE_GO = ["locked", "supervisor_record", "forked", "job_record"]
AFTER_END = ["peeked", "main_exit", "tree_empty", "exit_record"]

# Leaves a child in its own session and exits 42.
LEAVER = "setsid sleep 600 & exit 42"


def start_dying(yard, step):
    alive = Alive(yard.data_dir, "alive")
    command = ["/bin/sh", "-c", f"exec 9>{alive.path}; {LEAVER}"]
    return yard.prepare(command, testing={"die_after": step}), alive


@pytest.mark.parametrize("step", BEFORE_GO)
def test_dies_before_go_with_keeper(yard, step):
    attempt_id, _ = start_dying(yard, step)
    yard.keeper.run(attempt_id)
    end = yard.wait_end(attempt_id)
    if step == "job_record":
        # Told to go or not cannot be seen from the record; the status can.
        assert end["cause"] == "supervisor_lost"
    else:
        assert end["cause"] == "never_started"
    assert (end["code"], end["by"]) == (None, "keeper")
    assert yard.log(attempt_id) == b""


def test_dies_after_go_with_keeper(yard):
    attempt_id, alive = start_dying(yard, "go")
    yard.keeper.run(attempt_id)
    end = yard.wait_end(attempt_id)
    assert end["by"] == "keeper"
    assert (end["code"], end["cause"]) in ((None, "supervisor_lost"), (42, "exited"))
    alive.wait_all_dead()


@pytest.mark.parametrize("step", AFTER_END)
def test_dies_after_the_end_with_keeper(yard, step):
    attempt_id, alive = start_dying(yard, step)
    yard.keeper.run(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["code"], end["cause"]) == (42, "exited")
    assert end["by"] == ("supervisor" if step == "exit_record" else "keeper")
    assert yard.hear(attempt_id, "ended")["exit"] == end
    alive.wait_all_dead()


@pytest.mark.parametrize("step", ["go", *AFTER_END])
def test_dies_without_keeper(yard, step):
    """Both dead: the reconciler ends what is left. Only a status peeked but not yet recorded is
    lost, and it is null, never 0 (lost_code_is_null_never_zero)."""
    attempt_id, alive = start_dying(yard, step)
    folder = yard.folder(attempt_id)
    keeper = yard.keeper_pid()
    yard.keeper.run(attempt_id)
    wait_for(lambda: yard.journal(attempt_id).supervisor, "the supervisor")
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
    end = reconcile.settle(folder)
    assert end is not None
    yard.check_ended(attempt_id)
    alive.wait_all_dead()
    if end["by"] == "reconciler":
        if step in ("go", "peeked"):
            assert end["code"] in (None, 42)
            assert end["cause"] in ("supervisor_lost", "exited")
        else:
            assert (end["code"], end["cause"]) == (42, "exited")
    assert reconcile.settle(folder) == end


@pytest.mark.parametrize("step", ["locked", "supervisor_record", "forked", "job_record"])
def test_dies_before_go_without_keeper(yard, step):
    attempt_id, _ = start_dying(yard, step)
    folder = yard.folder(attempt_id)
    keeper = yard.keeper_pid()
    yard.keeper.run(attempt_id)
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's death")
    wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
    end = reconcile.settle(folder)
    assert end["code"] is None
    assert end["cause"] in ("never_started", "supervisor_lost")
    assert yard.log(attempt_id) == b""


def test_shim_kill9_20_at_once_keeper_records_all(yard):
    """R54"""
    ids = [yard.start(["/bin/sh", "-c", "setsid sleep 600 & exec sleep 600"]) for _ in range(20)]
    for attempt_id in ids:
        yard.wait_job(attempt_id)
    pids = [yard.supervisor_pid(attempt_id) for attempt_id in ids]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for attempt_id in ids:
        end = yard.wait_end(attempt_id)
        assert (end["by"], end["cause"], end["code"]) == ("keeper", "supervisor_lost", None)
    other = yard.start(["/bin/sh", "-c", "exit 6"])
    assert yard.wait_end(other)["code"] == 6


def test_others_are_not_disturbed_by_a_takeover(yard):
    living = [yard.start(["/bin/sleep", "600"]) for _ in range(3)]
    doomed = yard.start(["/bin/sleep", "600"])
    for attempt_id in (*living, doomed):
        yard.wait_job(attempt_id)
    os.kill(yard.supervisor_pid(doomed), signal.SIGKILL)
    yard.wait_end(doomed)
    for attempt_id in living:
        assert liveness.supervisor_alive(yard.folder(attempt_id))
        assert yard.journal(attempt_id).exit is None


def test_shim_sigstop_reported_not_killed(yard):
    """A supervisor that hangs keeps its lock: its attempt is alive, and nobody ends it."""
    attempt_id = yard.start(["/bin/sleep", "600"])
    yard.wait_job(attempt_id)
    pid = yard.supervisor_pid(attempt_id)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert reconcile.look(yard.folder(attempt_id)).state == reconcile.ALIVE
        assert reconcile.settle(yard.folder(attempt_id), keeper_alive=True) is None
    finally:
        os.kill(pid, signal.SIGCONT)


def test_keeper_keeps_the_status_of_a_stop(yard):
    """The supervisor saw the stop, recorded main_exit and died: the cause stays `cancelled`."""
    code = "import signal,sys,time; signal.signal(15, lambda *_: sys.exit(5))\n"
    code += "print('ready', flush=True)\ntime.sleep(600)"
    attempt_id = yard.start_python(code, testing={"die_after": "main_exit"})
    wait_for(lambda: b"ready" in yard.log(attempt_id), "the job")
    yard.stop(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["by"], end["cause"], end["code"]) == ("keeper", "cancelled", 5)
    assert end["stop"]["requested_by"] == "tester"


def test_same_attempt_handed_over_twice_runs_once(yard, tmp_path):
    counted = tmp_path / "count"
    attempt_id = yard.prepare(["/bin/sh", "-c", f"echo x >> {counted}; sleep 0.3"])
    for _ in range(4):
        yard.keeper.run(attempt_id)
    yard.wait_end(attempt_id)
    yard.keeper.run(attempt_id)
    yard.wait_end(yard.start(["/bin/true"]))
    assert counted.read_text() == "x\n"


def test_idle_supervisors_that_die_are_replaced(yard):
    yard.keeper.ensure()
    for _ in range(3):
        keeper = yard.keeper_pid()
        with open(f"/proc/{keeper}/task/{keeper}/children") as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)
        assert yard.wait_end(yard.start(["/bin/sh", "-c", "exit 3"]))["cause"] in (
            "exited",
            "never_started",
        )
    assert yard.wait_end(yard.start(["/bin/sh", "-c", "exit 3"]))["code"] == 3
