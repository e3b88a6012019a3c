"""What the processes of real attempts use, told by /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from runyard.executors import process_usage
from runyard.executors.process_usage import ProcessUsage
from runyard.supervisor import identity, journal
from yards import until

BUSY = "while True: pass"
# Leaves a file when it has all it wants.
HOLDING = "import time; held = bytearray({mb} << 20); open({mark!r}, 'w').close(); time.sleep(600)"


class Tree:
    """A process that stands for a supervisor, with what runs below it."""

    def __init__(self, folder, *programs):
        starts = "\n".join(
            f"subprocess.Popen([sys.executable, '-c', {program!r}])" for program in programs
        )
        source = f"import subprocess, sys, time\n{starts}\nprint('up', flush=True)\n"
        source += "for line in sys.stdin: exec(line)\n"
        self.root = subprocess.Popen(
            [sys.executable, "-c", source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.root.stdout.readline() == "up\n"
        self.attempt_id = f"job-{self.root.pid}.1"
        self.folder = folder / self.attempt_id
        journal.create(str(self.folder), {"attempt_id": self.attempt_id})
        record = identity.of_process(self.root.pid)
        journal.append(str(self.folder), "supervisor", record)

    def say(self, line):
        self.root.stdin.write(line + "\n")
        self.root.stdin.flush()

    def end(self):
        os.killpg(self.root.pid, 9)
        self.root.wait()
        self.root.stdin.close()
        self.root.stdout.close()


@pytest.fixture
def grow(tmp_path):
    made = []

    def make(*programs):
        made.append(Tree(tmp_path, *programs))
        return made[-1]

    yield make
    for tree in made:
        if tree.root.poll() is None:
            tree.end()


@pytest.fixture
def usage(tmp_path):
    return ProcessUsage(lambda attempt_id: str(tmp_path / attempt_id))


def one(usage, tree):
    return usage.of([tree.attempt_id])[tree.attempt_id]


def test_cpu_of_a_tree(grow, usage):
    """R14."""
    tree, idle = grow(BUSY), grow("import time; time.sleep(600)")
    began = time.monotonic()
    before = usage.of([tree.attempt_id, idle.attempt_id])
    until(lambda: one(usage, tree).cpu_s - before[tree.attempt_id].cpu_s > 0.5, 60)
    # It cannot have used more than the time that passed, but for the kernel's coarse ticks.
    used = one(usage, tree).cpu_s - before[tree.attempt_id].cpu_s
    assert used <= time.monotonic() - began + 0.1
    # It may have been starting still.
    assert one(usage, idle).cpu_s - before[idle.attempt_id].cpu_s < used


def test_memory_and_number_of_processes(grow, usage, tmp_path):
    marks = [tmp_path / "first", tmp_path / "second"]
    programs = [
        HOLDING.format(mb=mb, mark=str(mark)) for mb, mark in zip((60, 30), marks, strict=True)
    ]
    tree = grow(*programs)
    until(lambda: all(mark.exists() for mark in marks))
    found = one(usage, tree)
    assert found.rss_mb > 90
    assert found.rss_mb < 90 + 2 * 60
    assert len(found.pids) == 2
    assert tree.root.pid not in found.pids


def test_what_ended_processes_used_is_not_lost(grow, usage):
    """A process that starts many short ones uses what they use."""
    tree = grow()
    before = one(usage, tree)
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    tree.say(f"subprocess.run([sys.executable, '-c', {burn!r}]); print('done', flush=True)")
    assert tree.root.stdout.readline() == "done\n"
    after = one(usage, tree)
    assert after.pids == ()
    assert 0.3 <= after.cpu_s - before.cpu_s < 10


def test_bytes_written(grow, usage, tmp_path):
    target = tmp_path / "written"
    tree = grow()
    before = one(usage, tree)
    if before.write_bytes is None:
        pytest.skip("this kernel does not count storage")
    tree.say(
        f"f = open({str(target)!r}, 'wb'); f.write(bytes(8 << 20)); f.close(); "
        "print('done', flush=True)"
    )
    assert tree.root.stdout.readline() == "done\n"
    counted = one(usage, tree).write_bytes - before.write_bytes
    # A file system in memory writes to no storage.
    assert counted in (0, pytest.approx(8 << 20, rel=0.1))


def test_pss_is_told_once_a_minute(grow, tmp_path):
    now = 1000.0
    usage = ProcessUsage(lambda attempt_id: str(tmp_path / attempt_id), clock=lambda: now)
    mark = tmp_path / "held"
    tree = grow(HOLDING.format(mb=40, mark=str(mark)))
    until(mark.exists)
    assert one(usage, tree).pss_mb is None
    now += process_usage.FIRST_PSS_S
    found = one(usage, tree)
    assert 30 < found.pss_mb <= found.rss_mb + 1
    now += 30.0
    assert one(usage, tree).pss_mb is None
    now += 31.0
    assert one(usage, tree).pss_mb is not None


def test_a_number_that_another_process_has_by_now_tells_nothing(grow, usage, tmp_path):
    tree = grow()
    record = {**identity.of_process(tree.root.pid), "start_ticks": 1}
    folder = tmp_path / "job-other.1"
    journal.create(str(folder), {"attempt_id": "job-other.1"})
    journal.append(str(folder), "supervisor", record)
    assert usage.of(["job-other.1"]) == {}


def test_attempts_of_an_earlier_boot_tell_nothing(grow, usage, tmp_path):
    tree = grow()
    record = {**identity.of_process(tree.root.pid), "boot_id": "another"}
    folder = tmp_path / "job-old.1"
    journal.create(str(folder), {"attempt_id": "job-old.1"})
    journal.append(str(folder), "supervisor", record)
    assert usage.of(["job-old.1", "job-unknown.1"]) == {}


def test_a_tree_that_ends_is_left_out(grow, usage):
    tree, other = grow(), grow()
    names = [tree.attempt_id, other.attempt_id]
    assert set(usage.of(names)) == set(names)
    tree.end()
    assert set(usage.of(names)) == {other.attempt_id}


def test_the_dead_that_nobody_collected_are_no_processes(grow, usage):
    tree = grow("pass")
    until(lambda: one(usage, tree).pids == ())
