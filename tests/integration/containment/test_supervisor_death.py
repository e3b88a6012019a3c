"""A supervisor may be killed at any instant: no process survives, no exit code is invented, and
with the keeper above it none is lost (R41, R42)."""

import contextlib
import os
import signal

import pytest
from keeper_yard import Alive, wait_for

from runyard.supervisor import keeper_client, liveness, process_table, reconcile

WITH, WITHOUT = "with_keeper", "without_keeper"

# Leaves a child in its own session and exits 42.
LEAVER = "setsid sleep 600 & exit 42"


class Dying:
    """An attempt whose supervisor kills itself after a step, with its keeper alive or dead."""

    def __init__(self, yard, keeper):
        self.yard = yard
        self.keeper = keeper
        self.alive = Alive(yard.data_dir, "alive")

    def after(self, step, command=LEAVER):
        """The end record, once everything of the attempt is dead."""
        yard = self.yard
        script = f"exec 9>{self.alive.path}; {command}"
        self.attempt_id = yard.prepare(["/bin/sh", "-c", script], testing={"die_after": step})
        if self.keeper == WITH:
            yard.keeper.run(self.attempt_id)
            end = yard.wait_end(self.attempt_id)
        else:
            end = self._settled_without_keeper()
        self.alive.wait_all_dead()
        return end

    def _settled_without_keeper(self):
        """It is handed over, and the keeper is dead before the supervisor can look at it."""
        yard = self.yard
        yard.keeper.ensure()
        keeper = yard.keeper_pid()
        supervisors = process_table.children(keeper)
        for pid in supervisors:
            os.kill(pid, signal.SIGSTOP)
        yard.keeper.run(self.attempt_id)
        wait_for(lambda: self.attempt_id in yard.keeper.list()["attempts"], "the hand-over")
        os.kill(keeper, signal.SIGKILL)
        wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's death")
        for pid in supervisors:
            os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not any(map(process_table.alive, supervisors)), "their deaths")
        folder = yard.folder(self.attempt_id)
        end = reconcile.settle(folder)
        yard.check_ended(self.attempt_id)
        assert reconcile.settle(folder) == end
        return end

    @property
    def successor(self):
        return "keeper" if self.keeper == WITH else "reconciler"

    def started_nothing(self, step, cause):
        end = self.after(step, "echo ran")
        assert (end["code"], end["cause"], end["by"]) == (None, cause, self.successor)
        assert self.yard.log(self.attempt_id) == b""

    def kept_the_code(self, step):
        end = self.after(step)
        assert (end["code"], end["cause"]) == (42, "exited")
        assert end["by"] == ("supervisor" if step == "exit_record" else self.successor)
        if self.keeper == WITH:
            assert self.yard.hear(self.attempt_id, "ended")["exit"] == end


@pytest.fixture(params=[WITH, WITHOUT])
def dying(request, yard):
    return Dying(yard, request.param)


def test_supervisor_kill9_after_locked(dying):
    dying.started_nothing("locked", "never_started")


def test_supervisor_kill9_after_supervisor_record(dying):
    dying.started_nothing("supervisor_record", "never_started")


def test_supervisor_kill9_after_limits(dying):
    dying.started_nothing("limits", "never_started")


def test_supervisor_kill9_after_forked(dying):
    dying.started_nothing("forked", "never_started")


def test_supervisor_kill9_after_job_record(dying):
    """Told to go or not cannot be seen from the record: nothing ran, but nobody can prove it."""
    dying.started_nothing("job_record", "supervisor_lost")


def test_supervisor_kill9_after_go(dying):
    """Main may have ended by itself before its supervisor's death reached it."""
    end = dying.after("go")
    assert end["by"] == dying.successor
    assert (end["code"], end["cause"]) in ((None, "supervisor_lost"), (42, "exited"))


def test_supervisor_kill9_after_peeked(dying):
    """The only hole, a few milliseconds wide: seen, not recorded, and nobody left to see it."""
    if dying.keeper == WITH:
        dying.kept_the_code("peeked")
    else:
        end = dying.after("peeked")
        assert (end["code"], end["signal"], end["cause"]) == (None, None, "supervisor_lost")


def test_supervisor_kill9_after_main_exit(dying):
    dying.kept_the_code("main_exit")


def test_supervisor_kill9_after_tree_empty(dying):
    dying.kept_the_code("tree_empty")


def test_supervisor_kill9_after_exit_record(dying):
    dying.kept_the_code("exit_record")


def test_lost_code_is_null_never_zero(yard):
    """The job did end with 0; as nobody recorded that, nobody says so."""
    end = Dying(yard, WITHOUT).after("peeked", "exit 0")
    assert (end["code"], end["signal"], end["cause"]) == (None, None, "supervisor_lost")


def test_supervisor_kill9_hopper_keeper_catches(yard):
    """No scan sees a process that forks and exits all the time; a reaper above it does."""
    attempt_id, alive, _ = yard.start_shape("hopper_tight_x4")
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["by"], end["cause"]) == ("keeper", "supervisor_lost")


def test_supervisor_kill9_20_at_once_keeper_records_all(yard):
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


def test_supervisor_sigstop_reported_not_killed(yard):
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


def test_keeper_reads_main_exit_before_writing(yard):
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
    killed = []
    for _ in range(3):
        for pid in process_table.children(yard.keeper_pid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        assert yard.wait_end(yard.start(["/bin/sh", "-c", "exit 3"]))["cause"] in (
            "exited",
            "never_started",
        )
    wait_for(lambda: not any(map(process_table.alive, killed)), "their deaths")
    assert yard.wait_end(yard.start(["/bin/sh", "-c", "exit 3"]))["code"] == 3


def test_an_attempt_that_a_supervisor_took_after_all_keeps_its_files(yard):
    """R41: whoever was about to settle it, having seen nobody, leaves its TMPDIR alone."""
    attempt_id = yard.prepare(["/bin/sleep", "600"])
    folder = yard.folder(attempt_id)
    sight = reconcile.look(folder)
    assert sight.state == reconcile.LOST
    yard.keeper.run(attempt_id)
    yard.wait_job(attempt_id)
    kept = f"{folder}/tmp/kept"
    open(kept, "w").close()
    reconcile._conclude(folder, sight, {})
    assert yard.journal(attempt_id).exit is None
    assert os.path.exists(kept)
    yard.stop(attempt_id, grace_s=0)
    assert yard.wait_end(attempt_id)["temp_removed"] is True
