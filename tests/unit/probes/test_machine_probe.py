"""The machine probe, on this machine and beside a made-up control group."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from runyard.probes import machine
from runyard.probes.machine import PsutilProbe


@pytest.fixture
def limited(tmp_path, clock):
    """A probe inside a version 2 group with half a core and 1 GiB, and the group's folder."""
    group = tmp_path / "group"
    group.mkdir()
    (group / "cpu.max").write_text("50000 100000\n")
    (group / "cpu.stat").write_text("usage_usec 0\n")
    (group / "memory.max").write_text(f"{1 << 30}\n")
    (group / "memory.current").write_text(f"{(1 << 30) * 99 // 100}\n")
    proc_self = tmp_path / "self"
    proc_self.mkdir()
    (proc_self / "cgroup").write_text("0::/\n")
    (proc_self / "mountinfo").write_text(f"1 1 0:1 / {group} rw - cgroup2 cgroup2 rw\n")
    return PsutilProbe(tmp_path, clock=clock, proc_self=proc_self), group


@pytest.fixture
def unlimited(tmp_path, clock):
    return PsutilProbe(tmp_path, clock=clock, proc_self=tmp_path / "no groups")


def test_what_there_is(unlimited):
    assert unlimited.cpu_milli() == len(os.sched_getaffinity(0)) * 1000
    assert unlimited.memory_mb() == psutil.virtual_memory().total >> 20


def test_affinity_counts(unlimited):
    cpus = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cpus)})
        assert unlimited.cpu_milli() == 1000
    finally:
        os.sched_setaffinity(0, cpus)


def test_limits_of_the_group_count(limited):
    probe, _ = limited
    assert probe.cpu_milli() == 500
    assert probe.memory_mb() == 1024
    assert probe.load().memory >= 98.9


def test_the_groups_own_load_counts_against_its_quota(limited, clock):
    probe, group = limited
    clock.now += 10.0
    (group / "cpu.stat").write_text("usage_usec 4950000\n")  # of 5 s that it may use in 10
    assert probe.load().cpu >= 99.0


def test_load_is_an_average_over_30_seconds(limited, clock):
    """R12."""
    probe, group = limited
    used = 0.0
    for second in range(1, 121):
        clock.now += 1.0
        if second > 60:
            used += 0.5  # full speed for the second half
        (group / "cpu.stat").write_text(f"usage_usec {int(used * 1e6)}\n")
        load = probe.load().cpu
        if second == 75:
            group_share = 50.0
            assert load >= group_share - 5.0
    assert load == 100.0
    assert len(probe._samples) <= machine.WINDOW_S + 2


def test_calls_close_together_do_not_pile_up(unlimited, clock):
    for _ in range(100):
        clock.now += 0.001
        assert unlimited.load().cpu == 0.0
    assert len(unlimited._samples) == 1


def test_real_load(unlimited, clock):
    clock.now += 5.0
    load = unlimited.load()
    assert 0.0 <= load.cpu <= 100.0
    assert 0.0 < load.memory <= 100.0
    assert 0.0 < load.disk <= 100.0


def test_the_disk_of_a_path_that_is_not_made_yet(tmp_path, clock):
    probe = PsutilProbe(tmp_path / "a" / "b", clock=clock)
    assert probe.load().disk == pytest.approx(psutil.disk_usage(str(tmp_path)).percent, abs=5)


def test_a_path_that_cannot_be_measured(tmp_path, clock):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert PsutilProbe(blocked / "below", clock=clock).load().disk == 0.0


def test_identity(tmp_path, unlimited, monkeypatch):
    assert len(unlimited.machine_id()) == 32
    assert unlimited.machine_id() == PsutilProbe(tmp_path).machine_id()
    assert unlimited.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    given = tmp_path / "machine-id"
    given.write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(machine, "_MACHINE_ID_FILES", (tmp_path / "absent", given))
    known = unlimited.machine_id()
    assert "0123456789abcdef" not in known  # it is private to the machine
    monkeypatch.setattr(machine, "_MACHINE_ID_FILES", ())
    assert unlimited.machine_id() == unlimited.machine_id() != known
    monkeypatch.setattr(machine, "_BOOT_ID_FILE", tmp_path / "absent")
    assert unlimited.boot_id() == f"booted-{psutil.boot_time():.0f}"


def test_the_fallback_identity_knows_the_network_cards(tmp_path, unlimited, monkeypatch):
    monkeypatch.setattr(machine, "_MACHINE_ID_FILES", ())
    monkeypatch.setattr(machine, "_NETWORK", tmp_path / "net")
    without = unlimited.machine_id()
    card = tmp_path / "net" / "eth0"
    (card / "device").mkdir(parents=True)
    (card / "address").write_text("02:42:ac:11:00:02\n")
    virtual = tmp_path / "net" / "veth1"
    virtual.mkdir()
    (virtual / "address").write_text("ff:ff:ff:ff:ff:ff\n")
    with_card = unlimited.machine_id()
    (virtual / "address").write_text("11:11:11:11:11:11\n")
    assert without != with_card == unlimited.machine_id()


def test_without_affinity_all_cpus_count(unlimited, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert unlimited.cpu_milli() == os.cpu_count() * 1000
