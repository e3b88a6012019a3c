"""The same promises for a user without rights (R41, R55); root becomes somebody else for it."""

import json
import os
import shutil
import signal

import pytest
from without_rights import UID

SHAPES = [
    "plain_children",
    "setsid_child",
    "double_fork_daemon",
    "daemon_empty_environment",
    "daemon_non_dumpable",
    "sigterm_ignorer",
    "stopped_child",
    "tree_bomb_300",
    "nested_subreaper",
]
ENDS = {
    "cancel": ("cancelled", "supervisor", "echild"),
    "main_exits": ("exited", "supervisor", "echild"),
    "supervisor_dies": ("supervisor_lost", "keeper", "scan"),
    "both_die": ("supervisor_lost", "reconciler", "scan"),
}
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to make a set-uid program")


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ends_leave_nothing_without_rights(nobody, shape, how):
    """R41, R55"""
    seen = nobody.run(f"{shape}-{how}", how, shape)
    end = seen["end"]
    assert seen["dead"]
    assert seen["uid"] == UID
    assert (end["cause"], end["by"], end["proof"]) == ENDS[how]
    assert end["code"] == (42 if how == "main_exits" else None)
    assert seen["probe"]["containment"] == "subreaper+tag"


def test_directory_read_only(nobody):
    """While it runs: the end is proven and recorded all the same, and what could not be removed
    is told. Before it runs: nothing starts, others are not held up."""
    running = nobody.run("read-only-running", "read_only_while_running")
    assert running["dead"]
    assert not running["asked"]
    assert (running["end"]["cause"], running["end"]["proof"]) == ("cancelled", "echild")
    assert not running["end"]["temp_removed"]
    never = nobody.run("read-only-start", "read_only_from_the_start")
    assert (never["before"], never["other"], never["log"]) == (None, 3, "")
    assert (never["end"]["cause"], never["end"]["code"]) == ("never_started", None)


@pytest.fixture
def become_root(nobody):
    """A program with which anybody becomes root, where that is not prevented."""
    if os.statvfs(nobody.place).f_flag & os.ST_NOSUID:
        pytest.skip("set-uid programs have no effect on this file system")
    program = f"{nobody.place}/become_root"
    shutil.copyfile(shutil.which("setpriv"), program)
    os.chmod(program, 0o4755)
    yield program
    os.unlink(program)


@needs_root
def test_setuid_child_prevented_by_no_new_privs(nobody, become_root):
    seen = nobody.run("prevented", "becomes_root", PROGRAM=become_root, ALLOWED="no")
    assert "\n0\n" not in f"\n{seen['log']}"
    assert (seen["end"]["cause"], seen["end"]["proof"]) == ("cancelled", "echild")
    assert seen["end"]["was_stuck"] == []


@needs_root
def test_setuid_child_reported_when_allowed(nobody, become_root):
    """What another user's process is called is told; the attempt does not end while it lives."""
    allowed = {"PROGRAM": become_root, "ALLOWED": "yes"}
    with nobody.start("allowed", "becomes_root", **allowed) as process:
        told = json.loads(process.stdout.readline())
        assert not told["ended"]
        [stuck] = [p for p in told["stuck"] if p["uid"] == 0]
        assert stuck["comm"] == "sleep"
        os.kill(stuck["pid"], signal.SIGKILL)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    end = json.loads(out)["end"]
    assert (end["cause"], end["proof"], end["stuck"]) == ("cancelled", "echild", [])
    assert stuck["pid"] in [p["pid"] for p in end["was_stuck"]]
