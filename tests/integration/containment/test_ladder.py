"""Less than the usual: what a supervisor does on a machine that offers less (R55)."""

import os
import signal

import pytest

from runyard.supervisor import process_table
from runyard.supervisor.attempt import Attempt
from runyard.supervisor.host import SIGNALS, Host


def supervise_without_subreaper(yard, attempt_id):
    """As on a Python without ctypes: orphans of the job go past its supervisor."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.chdir(yard.data_dir)
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            Attempt(Host(0), attempt_id).run()
        finally:
            os._exit(0)
    return pid


@pytest.mark.parametrize("detach", ["setsid", "setsid -f"])
def test_without_a_subreaper_the_tag_finds_what_escaped(yard, detach):
    command = f"{detach} sleep 600 & sleep 0.3; exit 11"
    attempt_id = yard.prepare(["/bin/sh", "-c", command])
    os.waitpid(supervise_without_subreaper(yard, attempt_id), 0)
    end = yard.wait_end(attempt_id)
    assert (end["code"], end["proof"]) == (11, "scan")
    assert yard.journal(attempt_id).supervisor["containment"] == "tag"


def test_level_recorded_in_supervisor_record(yard):
    attempt_id = yard.start(["/bin/true"])
    yard.wait_end(attempt_id)
    assert yard.journal(attempt_id).supervisor["containment"] == "subreaper"


def test_probe_no_pidfd(nobody):
    """A kernel before 5.3: the probe says so, and a cancel only takes until the heartbeat."""
    seen = nobody.run("no-pidfd", "without_pidfds", REFUSED="without_pidfds")
    assert not seen["probe"]["pidfd"]
    assert not seen["nudged"]
    assert seen["dead"]
    assert (seen["end"]["cause"], seen["end"]["proof"]) == ("cancelled", "echild")


@pytest.mark.container
def test_probe_no_userns(nobody):
    """As in a default container: the probe says so, and nothing else is missing."""
    refused = {"REFUSED": "without_user_namespaces"}
    seen = nobody.run("no-userns", "cancel", "double_fork_daemon", **refused)
    assert not seen["probe"]["strict_isolation"]
    assert seen["probe"]["containment"] == "subreaper+tag"
    assert seen["dead"]


def test_probe_no_children_file(monkeypatch):
    """A kernel without the children files: parents are found by looking at every process."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    read = process_table.read
    monkeypatch.setattr(
        process_table, "read", lambda path, *a: None if "children" in path else read(path, *a)
    )
    try:
        assert pid in process_table.own_children()
        assert pid in process_table.children(os.getpid())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
