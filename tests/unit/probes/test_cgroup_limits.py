"""Limits of control groups, versions 1 and 2, from trees as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.probes import cgroup


class FakeKernel:
    """/proc/self and mounted group trees under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.proc_self = root / "proc self"
        self.proc_self.mkdir()
        self._mounts: list[str] = ["23 1 8:1 / / rw - ext4 /dev/sda1 rw", "a torn line"]
        self._groups: list[str] = ["torn"]

    def mount(self, name: str, kind: str, options: str, root: str = "/") -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        shown = str(folder).replace(" ", "\\040")
        self._mounts.append(f"32 31 0:29 {root} {shown} rw,relatime - {kind} {kind} {options}")
        return folder

    def group(self, controllers: str, path: str) -> None:
        self._groups.append(f"1:{controllers}:{path}")

    def places(self) -> cgroup.CgroupPlaces:
        (self.proc_self / "cgroup").write_text("\n".join(self._groups) + "\n")
        (self.proc_self / "mountinfo").write_text("\n".join(self._mounts) + "\n")
        return cgroup.find_places(self.proc_self)


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


@pytest.fixture
def kernel(tmp_path):
    return FakeKernel(tmp_path)


def test_version_2_takes_the_tightest_group_above(kernel):
    mount = kernel.mount("cg two", "cgroup2", "rw")
    kernel.group("", "/system/yard")
    write(mount, cpu__max="max 100000")
    write(mount / "system", cpu__max="250000 100000", memory__max="8589934592")
    write(mount / "system" / "yard", cpu__max="max 100000", memory__max="max")
    places = kernel.places()
    assert len(places.unified) == 3
    assert cgroup.cpu_quota_milli(places) == 2500
    assert cgroup.memory_limit(places) == 8 << 30


def test_version_2_use(kernel):
    mount = kernel.mount("cg", "cgroup2", "rw")
    kernel.group("", "/")
    write(mount, cpu__max="100000 100000", memory__max=1000, memory__current=900)
    write(mount, cpu__stat="nr 1\nusage_usec 1500000", memory__stat="anon 1\ninactive_file 300")
    places = kernel.places()
    assert cgroup.cpu_used_s(places) == 1.5
    assert cgroup.memory_use(places) == cgroup.MemoryUse(600, 1000)


def test_version_1(kernel):
    cpu = kernel.mount("cpu", "cgroup", "rw,cpu,cpuacct")
    memory = kernel.mount("memory", "cgroup", "rw,memory")
    kernel.group("cpu,cpuacct", "/docker/x")
    kernel.group("memory", "/docker/x")
    write(cpu, cpu__cfs_quota_us=-1, cpu__cfs_period_us=100000)
    write(cpu / "docker/x", cpu__cfs_quota_us=50000, cpu__cfs_period_us=100000)
    write(cpu / "docker/x", cpuacct__usage=2_000_000_000)
    write(memory, memory__limit_in_bytes=9223372036854771712)
    write(memory / "docker/x", memory__limit_in_bytes=2000, memory__usage_in_bytes=1500)
    write(memory / "docker/x", memory__stat="inactive_file 1\ntotal_inactive_file 500")
    places = kernel.places()
    assert cgroup.cpu_quota_milli(places) == 500
    assert cgroup.cpu_used_s(places) == 2.0
    assert cgroup.memory_limit(places) == 2000
    assert cgroup.memory_use(places) == cgroup.MemoryUse(1000, 2000)


def test_a_container_sees_its_own_group_at_the_mount(kernel):
    """Without a group namespace the mount's root is the container's group."""
    mount = kernel.mount("memory", "cgroup", "rw,memory", root="/docker/x")
    kernel.group("memory", "/docker/x")
    write(mount, memory__limit_in_bytes=4096)
    assert cgroup.memory_limit(kernel.places()) == 4096


def test_a_mount_that_does_not_show_our_group(kernel):
    mount = kernel.mount("memory", "cgroup", "rw,memory", root="/docker/x")
    kernel.group("memory", "/docker/xyz")
    write(mount, memory__limit_in_bytes=4096)
    places = kernel.places()
    assert places.memory == (mount,)


def test_no_limits_no_answers(kernel):
    mount = kernel.mount("cg", "cgroup2", "rw")
    kernel.mount("pids", "cgroup", "rw,pids")
    kernel.group("", "/")
    kernel.group("pids", "/")
    write(mount, memory__current=5)
    places = kernel.places()
    assert cgroup.cpu_quota_milli(places) is None
    assert cgroup.cpu_used_s(places) is None
    assert cgroup.memory_limit(places) is None
    assert cgroup.memory_use(places) is None


def test_odd_contents_are_passed_over(kernel):
    mount = kernel.mount("cg", "cgroup2", "rw")
    cpu = kernel.mount("cpu", "cgroup", "rw,cpu")
    kernel.group("", "/")
    kernel.group("cpu", "/")
    write(mount, cpu__max="10000 50000", memory__max="many", cpu__stat="nothing here")
    write(cpu, cpu__cfs_quota_us=50000)
    places = kernel.places()
    assert cgroup.cpu_quota_milli(places) == 200
    assert cgroup.cpu_used_s(places) is None
    assert cgroup.memory_limit(places) is None


def test_a_limit_without_a_count_of_use(kernel):
    mount = kernel.mount("cg", "cgroup2", "rw")
    kernel.group("", "/")
    write(mount, memory__max=1000)
    assert cgroup.memory_use(kernel.places()) is None


def test_a_system_without_groups(tmp_path):
    assert cgroup.find_places(tmp_path / "absent") == cgroup.CgroupPlaces()


def test_this_machine():
    places = cgroup.find_places()
    assert all(folder.is_dir() for folder in (*places.unified, *places.cpu, *places.memory))
