"""What a group writes and reads on cgroup v2, on plain files: few machines have both versions."""

import os

import pytest

from runyard.supervisor import attempt_group
from runyard.supervisor.attempt_group import Group

V2_FILES = ("cgroup.kill", "memory.max", "memory.swap.max", "memory.oom.group", "pids.max")


@pytest.fixture
def directory(tmp_path):
    for name in V2_FILES:
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.fixture
def group(directory):
    return Group(dict.fromkeys(("unified", "memory", "pids"), str(directory)))


def test_v2_limits(group, directory):
    """At its limit all of a job ends together, and it cannot hide in swap."""
    assert group.limit_memory(100)
    assert group.limit_processes(50)
    assert (directory / "memory.max").read_text() == str(100 << 20)
    assert (directory / "memory.swap.max").read_text() == "0"
    assert (directory / "memory.oom.group").read_text() == "1"
    assert (directory / "pids.max").read_text() == "50"


def test_v2_kill_stops_forks_first(group, directory):
    group.kill()
    assert (directory / "pids.max").read_text() == "0"
    assert (directory / "cgroup.kill").read_text() == "1"


def test_v2_counters(group, directory):
    (directory / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\n")
    (directory / "memory.peak").write_text(f"{77 << 20}\n")
    (directory / "pids.events").write_text("max 4\n")
    (directory / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert group.oom_kills() == 3
    assert group.memory_peak_mb() == 77
    assert group.forks_refused() == 4
    assert group.populated()
    (directory / "cgroup.events").write_text("populated 0\nfrozen 0\n")
    assert not group.populated()


def test_one_directory_is_made_and_joined_once(group, directory):
    assert group.directories == [str(directory)]


def test_nothing_is_there(tmp_path):
    """A group that is gone, or whose files cannot be read, is empty and counts nothing."""
    gone = str(tmp_path / "gone")
    group = Group(dict.fromkeys(("unified", "memory", "pids"), gone))
    group.kill()
    group.thaw()
    assert not group.limit_memory(1)
    assert (group.oom_kills(), group.memory_peak_mb(), group.forks_refused()) == (0, None, 0)
    assert not group.populated()
    assert group.members() == []
    assert group.remove()


def test_all_directories_or_none(tmp_path):
    group = Group({"memory": f"{tmp_path}/made", "pids": f"{tmp_path}/no/such/place"})
    assert not group.make()
    assert os.listdir(tmp_path) == []


def test_no_two_groups_have_one_name(tmp_path):
    places = {"unified": str(tmp_path)}
    names = {attempt_group.new(places).paths["unified"] for _ in range(100)}
    assert len(names) == 100
