"""What an attempt uses, as samples: rates from two readings, and its share of its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from runyard.domain.monitoring.series import Sample
from runyard.domain.resources import GpuGrant
from runyard.executors.base import Usage
from runyard.probes.readings import GpuReading

_MB = 1 << 20
_OF_A_GPU = ("util", "memory_mb", "memory_percent", "temperature", "power_w")


def process_samples(before: Usage | None, now: Usage, at: float) -> Iterator[Sample]:
    yield Sample("system.rss_mb", at, now.rss_mb)
    yield Sample("system.processes", at, float(len(now.pids)))
    if now.pss_mb is not None:
        yield Sample("system.pss_mb", at, now.pss_mb)
    if before is None or now.at <= before.at:
        return
    span = now.at - before.at
    # A process that nobody waited for takes its counters with it.
    yield Sample("system.cpu_percent", at, max(0.0, 100.0 * (now.cpu_s - before.cpu_s) / span))
    for name, older, newer in (
        ("system.read_mb_s", before.read_bytes, now.read_bytes),
        ("system.write_mb_s", before.write_bytes, now.write_bytes),
    ):
        if older is not None and newer is not None:
            yield Sample(name, at, max(0.0, (newer - older) / span / _MB))


def gpu_samples(
    grants: Sequence[GpuGrant],
    readings: Mapping[str, GpuReading],
    memory: Mapping[str, Mapping[int, int]],
    pids: Sequence[int],
    at: float,
) -> Iterator[Sample]:
    """Of each GPU it holds, and their means. Memory is that of its own processes where the driver
    names them (`memory`: GPU -> process -> MB)."""
    own = set(pids)
    seen: dict[str, list[float]] = {}
    for grant in grants:
        reading = readings.get(grant.uuid)
        if reading is None:
            continue
        for name, value in _of_gpu(reading, memory.get(grant.uuid, {}), own, grant.milli).items():
            seen.setdefault(name, []).append(value)
            yield Sample(f"gpu.{grant.index}.{name}", at, value)
    for name, values in seen.items():
        yield Sample(f"gpu.{name}", at, fmean(values))


def _of_gpu(
    reading: GpuReading, memory: Mapping[int, int], own: set[int], milli: int
) -> dict[str, float]:
    values = {name: getattr(reading, name) for name in _OF_A_GPU}
    mine = sum(used for pid, used in memory.items() if pid in own)
    if mine or milli < 1000:
        total = _total_mb(reading)
        values["memory_mb"] = mine
        values["memory_percent"] = 100.0 * mine / total if total else None
    return {name: float(value) for name, value in values.items() if value is not None}


def _total_mb(reading: GpuReading) -> float | None:
    if not reading.memory_mb or not reading.memory_percent:
        return None
    return reading.memory_mb / reading.memory_percent * 100.0
