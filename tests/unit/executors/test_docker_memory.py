"""Where the kernel counts what it killed in a container, and when it is believed."""

import os
import subprocess

import pytest

from runyard.executors.docker_memory import MemoryWatch, counters

ID = "1fab1b131484"


@pytest.mark.parametrize(
    ("groups", "path"),
    [
        (f"0::/libpod_parent/libpod-{ID}\n", f"/g/libpod_parent/libpod-{ID}/memory.events"),
        (f"4:memory:/docker/{ID}\n0::/\n", f"/g/memory/docker/{ID}/memory.oom_control"),
        (f"0::/a\n4:memory:/docker/{ID}\n", f"/g/memory/docker/{ID}/memory.oom_control"),
        ("4:memory:/\n0::/\n", None),
        ("", None),
    ],
)
def test_where_it_is_counted(groups, path):
    assert counters(groups.encode(), "/g") == path


@pytest.mark.parametrize("pid", [0, os.getpid()], ids=["none", "this one"])
def test_a_process_that_is_not_the_containers_tells_nothing(pid):
    """An engine in another process namespace gives numbers that mean others here."""
    assert not MemoryWatch(ID, pid).ran_out()


def test_a_process_that_has_ended_tells_nothing():
    with subprocess.Popen(["true"]) as process:
        pass
    assert not MemoryWatch(ID, process.pid).ran_out()
