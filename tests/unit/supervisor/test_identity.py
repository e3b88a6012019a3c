"""Identities: what makes a process the one that was recorded."""

import os
import subprocess

import pytest

from runyard.supervisor import identity, kernel, process_table


def test_own_identity_verifies():
    record = identity.of_process(os.getpid())
    pidfd = identity.open_verified(record)
    assert pidfd is not None
    os.close(pidfd)


@pytest.mark.parametrize("field", ["boot_id", "pidns", "init_ticks", "start_ticks"])
def test_any_difference_is_a_stranger(field):
    record = identity.of_process(os.getpid())
    record[field] = "other" if field == "boot_id" else record[field] + 1
    assert identity.open_verified(record) is None


def test_a_record_without_process_1_still_counts():
    """Written by a release that did not tell of it."""
    record = identity.of_process(os.getpid())
    del record["init_ticks"]
    assert identity.same_machine_life(record)


def test_gone_process_has_no_identity():
    process = subprocess.Popen(["true"])
    record = identity.of_process(process.pid)
    process.wait()
    assert identity.start_ticks(process.pid) is None
    assert identity.open_verified(record) is None


def test_names_with_parentheses_do_not_confuse(tmp_path):
    """The command name stands in the middle of /proc/PID/stat and may hold anything."""
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(program), "60"])
    try:
        stat = identity.stat_fields(process.pid)
        assert int(stat[1]) == os.getpid()
        assert process_table.alive(process.pid)
    finally:
        process.kill()
        process.wait()


def test_children_and_descendants():
    process = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & wait"])
    try:
        while len(process_table.children(process.pid)) < 2:
            pass
        grandchildren = process_table.children(process.pid)
        assert process.pid in process_table.children(os.getpid())
        assert set(grandchildren) <= set(process_table.descendants(os.getpid()))
        assert set(process_table._children_by_scan(process.pid)) == set(grandchildren)
    finally:
        for pid in process_table.children(process.pid):
            os.kill(pid, 9)
        process.wait()


def test_tag_is_inherited_and_read_from_outside():
    tag = (1 << 60) + 12345
    pid = os.fork()
    if pid == 0:
        kernel.set_tag(tag)
        os.execve("/bin/sleep", ["sleep", "60"], {})
    try:
        while process_table.tag(pid) != tag:
            pass
        assert process_table.tag(os.getpid()) != tag
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_zombies_are_dead():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert not process_table.alive(pid)
    os.waitpid(pid, 0)


def test_ancestors_hold_the_whole_line():
    line = process_table.ancestors_and_self()
    assert {os.getpid(), os.getppid(), 1} <= line
