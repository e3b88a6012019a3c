"""How busy the CPUs are that this process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass

import psutil

from runyard.probes import cgroup


@dataclass(frozen=True, slots=True)
class CpuSample:
    at: float
    busy_s: float  # of all usable CPUs together
    total_s: float
    group_s: float | None  # used by our control group, when it has a quota


def sample(at: float, groups: cgroup.CgroupPlaces) -> CpuSample:
    times = psutil.cpu_times(percpu=True)
    usable = [times[cpu] for cpu in usable_cpus() if cpu < len(times)] or times
    total = sum(sum(cpu[:8]) for cpu in usable)  # guest time is part of user time already
    idle = sum(cpu.idle + getattr(cpu, "iowait", 0.0) for cpu in usable)
    return CpuSample(at, total - idle, total, cgroup.cpu_used_s(groups))


def between(older: CpuSample, newer: CpuSample, groups: cgroup.CgroupPlaces) -> float:
    """Percent of what may be used: of the CPUs, or of the group's quota if that is nearer."""
    machine = percent(newer.busy_s - older.busy_s, newer.total_s - older.total_s)
    quota = cgroup.cpu_quota_milli(groups)
    if quota is None or newer.group_s is None or older.group_s is None:
        return machine
    span = newer.at - older.at
    return max(machine, percent(newer.group_s - older.group_s, span * quota / 1000))


def usable_cpus() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def percent(part: float, whole: float) -> float:
    return min(100.0, max(0.0, 100.0 * part / whole)) if whole > 0 else 0.0
