"""Locks of GPUs: real files and real processes."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys

import pytest

from runyard.probes import gpu_locks
from runyard.probes.gpu_locks import GpuLocks

UUID = "GPU-11111111-2222"

_HOLD = """
import fcntl, os, sys
path, how, owner = sys.argv[1:]
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
fcntl.flock(fd, fcntl.LOCK_SH if how == "shared" else fcntl.LOCK_EX)
os.pwrite(fd, owner.encode(), 0)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def locks(tmp_path):
    return GpuLocks(tmp_path / "locks", "node-own")


@pytest.fixture
def hold(locks):
    """Let another process hold a GPU's lock until the test ends."""
    holders = []

    def start(owner, how="alone"):
        locks.prepare(UUID)
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLD, str(locks.path(UUID)), how, owner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        holders.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in holders:
        process.communicate(timeout=30)


def test_free(locks):
    assert not locks.held_elsewhere(UUID)
    assert not locks.held_elsewhere(UUID)


@pytest.mark.parametrize("how", ["alone", "shared"])
@pytest.mark.parametrize("listed", [True, False])
def test_held_by_another_server(locks, hold, how, listed, monkeypatch, tmp_path):
    if not listed:  # as from another PID namespace
        monkeypatch.setattr(gpu_locks, "_LOCKS", tmp_path / "absent")
    process = hold("node-other", how)
    assert locks.holder(UUID) == "node-other"
    assert locks.held_elsewhere(UUID)
    process.communicate(timeout=30)
    assert not locks.held_elsewhere(UUID)


def test_held_by_ourselves_is_not_elsewhere(locks, hold):
    hold("node-own")
    assert not locks.held_elsewhere(UUID)


def test_looking_leaves_the_lock_free(locks, tmp_path, monkeypatch):
    locks.prepare(UUID)
    locks.path(UUID).write_text("node-other")
    monkeypatch.setattr(gpu_locks, "_LOCKS", tmp_path / "absent")
    assert not locks.held_elsewhere(UUID)
    fd = os.open(locks.path(UUID), os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)


def test_files_and_folder_are_for_everybody(locks):
    before = os.umask(0o077)
    try:
        locks.prepare(UUID)
        locks.prepare(UUID)
    finally:
        os.umask(before)
    assert stat.S_IMODE(locks.path(UUID).stat().st_mode) == 0o666
    assert stat.S_IMODE(locks.path(UUID).parent.stat().st_mode) == 0o1777


def test_a_folder_that_cannot_be_used_is_no_lock(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert not GpuLocks(blocked / "locks", "node-own").held_elsewhere(UUID)


def test_a_link_is_not_followed(locks, tmp_path):
    locks.prepare(UUID)
    (tmp_path / "secret").write_text("node-other")
    locks.path("GPU-link").symlink_to(tmp_path / "secret")
    assert not locks.held_elsewhere("GPU-link")


def test_a_folder_in_place_of_a_file(locks):
    locks.prepare(UUID)
    locks.path("GPU-folder").mkdir()
    assert not locks.held_elsewhere("GPU-folder")
