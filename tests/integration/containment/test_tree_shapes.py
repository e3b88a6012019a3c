"""Whatever shape a job's processes take, its end leaves none of them (R41).

Each shape is ended in three ways: by a cancel, by its own main process, by its supervisor's death.
Truth for "all dead" is end-of-file on a FIFO that every process of the tree holds.
"""

import os
import signal

import pytest
from keeper_yard import died

from runyard.supervisor import process_table

container = pytest.mark.container


def cancelled(yard, attempt_id, go):
    del go
    assert yard.stop(attempt_id, grace_s=0.2)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["by"], end["proof"]) == ("cancelled", "supervisor", "echild")
    assert end["code"] is None
    assert end["signal"] in (signal.SIGTERM, signal.SIGKILL)
    assert end["stop"]["requested_by"] == "tester"


def main_ends(yard, attempt_id, go):
    with open(go, "wb") as file:
        file.write(b"g")
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"], end["proof"]) == ("exited", 42, "echild")


def supervisor_killed(yard, attempt_id, go):
    del go
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["by"], end["proof"]) == ("supervisor_lost", "keeper", "scan")
    assert end["code"] is None


@pytest.fixture(params=[cancelled, main_ends, supervisor_killed], ids=lambda way: way.__name__)
def leaves_nothing(request, yard):
    """Starts a shape, ends it in one of the ways, and sees that all of it is dead by then."""

    def check(shape):
        then = "exit" if request.param is main_ends else "stay"
        attempt_id, alive, go = yard.start_shape(shape, then)
        request.param(yard, attempt_id, go)
        assert alive.all_dead_now()

    return check


@container
def test_kill_plain_children(leaves_nothing):
    leaves_nothing("plain_children")


@container
def test_kill_setsid_child(leaves_nothing):
    leaves_nothing("setsid_child")


@container
def test_kill_double_fork_daemon(leaves_nothing):
    leaves_nothing("double_fork_daemon")


@container
def test_kill_daemon_empty_environment(leaves_nothing):
    leaves_nothing("daemon_empty_environment")


@container
def test_kill_daemon_non_dumpable(leaves_nothing):
    leaves_nothing("daemon_non_dumpable")


@container
def test_kill_nohup_grandchild(leaves_nothing):
    leaves_nothing("nohup_grandchild")


@container
def test_kill_sigterm_ignorer(leaves_nothing):
    leaves_nothing("sigterm_ignorer")


@container
def test_kill_stopped_child(leaves_nothing):
    leaves_nothing("stopped_child")


@container
def test_kill_zombie_parent(leaves_nothing):
    leaves_nothing("zombie_parent")


@container
def test_kill_tree_bomb_300(leaves_nothing):
    leaves_nothing("tree_bomb_300")


@container
def test_kill_hopper_1ms(leaves_nothing):
    leaves_nothing("hopper_1ms")


@container
def test_kill_hopper_tight_x4(leaves_nothing):
    leaves_nothing("hopper_tight_x4")


@container
def test_kill_deep_chain_200(leaves_nothing):
    leaves_nothing("deep_chain_200")


def test_kill_clone_parent_child(leaves_nothing):
    """Its child is not its own but its parent's: the supervisor's from the start."""
    leaves_nothing("clone_parent_child")


def test_kill_ptraced_child(leaves_nothing):
    leaves_nothing("ptraced_child")


@container
def test_kill_nested_subreaper(leaves_nothing):
    """Orphans come up to the job's own reaper first, and to us when that is dead."""
    leaves_nothing("nested_subreaper")


@container
@pytest.mark.parametrize("way", [cancelled, main_ends, supervisor_killed])
def test_kill_closes_all_fds_then_daemonizes(yard, way):
    """It holds no FIFO either, so truth is a pidfd, opened while the daemon stands."""
    then = "exit" if way is main_ends else "stay"
    attempt_id, alive, go = yard.start_shape("closes_all_fds_then_daemonizes", then)
    [daemon] = [
        pid
        for pid in yard.tagged(yard.specs[attempt_id]["tag"])
        if b"nothing_but_sleep" in process_table.command_line(pid)
    ]
    assert os.listdir(f"/proc/{daemon}/fd") == []
    with died(daemon) as dead:
        way(yard, attempt_id, go)
        assert dead()
    assert alive.all_dead_now()


def test_job_starts_own_process_group_terminal_shell(leaves_nothing):
    """A shell with job control on a terminal of its own: every command is a group."""
    leaves_nothing("terminal_shell")


def test_kill_own_process_groups(leaves_nothing):
    leaves_nothing("own_process_groups")


@container
def test_main_exits_leftovers_killed(yard):
    """Three of every kind are left by a main process that ends by itself: its code is kept."""
    attempt_id, alive, go = yard.start_shape("leftovers", then="exit")
    main_ends(yard, attempt_id, go)
    assert alive.all_dead_now()
    end = yard.journal(attempt_id).exit
    assert end["processes_ended"] >= 9
    assert [s["target"] for s in end["signals"]] == ["leftovers", "children"]
