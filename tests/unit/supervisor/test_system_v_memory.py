"""Segments of System V shared memory go with the job that made them, and nobody else's do."""

import ctypes
import os
import subprocess
import sys

import pytest

from runyard.supervisor import shared_memory, system_v_memory

LIBC = ctypes.CDLL(None, use_errno=True)
SIZE = 65536
MAKE = """
import ctypes, sys
libc = ctypes.CDLL(None)
print(libc.shmget(0, 65536, 0o600 | 0o1000), flush=True)
sys.stdin.read()
"""


def segments():
    return {row.segment_id for row in system_v_memory._rows()}


@pytest.fixture
def maker():
    """A process that made a segment; (process, segment)."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    segment = int(process.stdout.readline())
    assert segment >= 0
    yield process, segment
    process.communicate()
    LIBC.shmctl(segment, 0, None)


def test_a_segment_is_found_while_its_maker_lives_and_removed_after(maker):
    """R2, R50"""
    process, segment = maker
    found = shared_memory.mapped_by([process.pid])
    assert len(found) == 1
    process.communicate()
    assert segment in segments()
    assert shared_memory.remove(found) == SIZE
    assert segment not in segments()
    assert shared_memory.remove(found) == 0


def test_one_that_somebody_has_attached_stays(maker):
    process, segment = maker
    found = shared_memory.mapped_by([process.pid])
    LIBC.shmat.restype = ctypes.c_void_p
    LIBC.shmdt.argtypes = [ctypes.c_void_p]
    address = LIBC.shmat(segment, None, 0)
    process.communicate()
    assert shared_memory.remove(found) == 0
    LIBC.shmdt(address)
    assert shared_memory.remove(found) == SIZE


def test_segments_of_others_are_not_found(maker, monkeypatch):
    """R43: its maker is not among them, or had the number of one of them earlier."""
    process, segment = maker
    assert shared_memory.mapped_by([os.getpid()]) == {}
    started = system_v_memory._started_at(process.pid)
    monkeypatch.setattr(system_v_memory, "_started_at", lambda _pid: started + 3600)
    assert system_v_memory.made_by([process.pid]) == {}
    assert segment in segments()
