"""What the machine offers is tried, and absence is found out (the degradation ladder)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.supervisor import cgroup, probe


def test_names_everything_doctor_shows(tmp_path):
    found = probe.probe(str(tmp_path))
    assert set(found) == {
        "children_file",
        "cgroup_roles",
        "cgroup_v1_freezer",
        "cgroup_v2",
        "containment",
        "ctypes",
        "hole_punching",
        "level",
        "no_new_privs",
        "pidfd",
        "pidfd_inode",
        "python",
        "strict_isolation",
        "strict_isolation_obstacle",
        "subreaper",
        "tag",
    }
    assert found["level"] == 1
    assert found["containment"] == "subreaper+tag"


def test_probe_changes_nothing_here(tmp_path):
    places = [Path("/proc/self/limits"), Path("/proc/self/cgroup")]
    before = [place.read_text() for place in places]
    probe.probe(str(tmp_path))
    assert [place.read_text() for place in places] == before


@pytest.mark.container
def test_probe_tmpfs_is_not_cgroup(tmp_path):
    """A mkdir that succeeds on a plain directory means nothing."""
    (tmp_path / "cgroup.controllers").write_text("")
    assert cgroup.writable_v2(str(tmp_path)) is None
    (tmp_path / "freezer").mkdir()
    (tmp_path / "freezer" / "cgroup.procs").write_text("")
    assert cgroup.writable_v1_freezer(str(tmp_path)) is None


@pytest.mark.container
def test_probe_read_only_cgroup():
    """Where no group can be made, as in a container with the default profile."""
    assert cgroup._usable("/proc/self", "cgroup.kill") is None


def test_probe_no_ctypes(tmp_path):
    """A Python without ctypes: no subreaper, said so, and nothing breaks."""
    (tmp_path / "ctypes.py").write_text("raise ImportError('no ctypes here')")
    source = os.path.abspath(f"{os.path.dirname(probe.__file__)}/../..")
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {source!r}]\n"
        "from runyard.supervisor import probe\n"
        "found = probe.probe()\n"
        "print(found['ctypes'], found['subreaper'], found['level'], found['containment'])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False", "0", "tag"]
