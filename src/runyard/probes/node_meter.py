"""The machine as it is measured again and again: CPU, memory, disk, network."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from runyard.probes import cgroup, cpu_use
from runyard.probes.machine import memory_percent
from runyard.probes.readings import NodeReading

_MB = 1 << 20
_GB = 1 << 30
_SECTOR = 512  # bytes, whatever the disk's own is
SYS = Path("/sys")
MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class _Counters:
    """Bytes since boot; None where there is no such counter."""

    at: float
    disk: tuple[int, int] | None  # read, written
    net: tuple[int, int] | None  # in, out


class PsutilMeter:
    """`path` is on the disk that is measured."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        proc_self: Path = cgroup.PROC_SELF,
        sys: Path = SYS,
    ) -> None:
        self._path = path
        self._clock = clock
        self._sys = sys
        self._groups = cgroup.find_places(proc_self)
        self._cpu: cpu_use.CpuSample | None = None
        self._counters: _Counters | None = None

    def read(self) -> NodeReading:
        memory = psutil.virtual_memory()
        percent, free = self._disk_space()
        before, now = self._counters, self._count()
        self._counters = now
        disk_read, disk_written = _rates(before, now, "disk")
        net_in, net_out = _rates(before, now, "net")
        return NodeReading(
            cpu_percent=self._cpu_percent(now.at),
            memory_percent=memory_percent(memory.percent, self._groups),
            memory_used_mb=(memory.total - memory.available) / _MB,
            disk_percent=percent,
            disk_free_gb=free,
            disk_read_mb_s=disk_read,
            disk_write_mb_s=disk_written,
            net_in_mb_s=net_in,
            net_out_mb_s=net_out,
        )

    def _cpu_percent(self, at: float) -> float | None:
        before, self._cpu = self._cpu, cpu_use.sample(at, self._groups)
        if before is None or self._cpu.total_s <= before.total_s:
            return None
        return cpu_use.between(before, self._cpu, self._groups)

    def _disk_space(self) -> tuple[float | None, float | None]:
        try:
            usage = psutil.disk_usage(str(self._path))
        except OSError:
            return None, None
        return float(usage.percent), usage.free / _GB

    def _count(self) -> _Counters:
        return _Counters(self._clock(), self._disk_bytes(), self._network_bytes())

    def _disk_bytes(self) -> tuple[int, int] | None:
        try:
            device = os.stat(self._path).st_dev
        except OSError:
            return None
        number = f"{os.major(device)}:{os.minor(device)}"
        for folder in (self._sys / "dev/block" / number, self._named_device(number)):
            try:
                fields = (folder / "stat").read_text().split() if folder else []
                return int(fields[2]) * _SECTOR, int(fields[6]) * _SECTOR
            except (OSError, ValueError, IndexError):
                continue
        return None

    def _named_device(self, number: str) -> Path | None:
        """Some file systems have a device number of their own: what they are mounted from tells
        the disk."""
        try:
            lines = MOUNTS.read_text().splitlines()
        except OSError:
            return None
        for line in lines:
            before, _, after = line.partition(" - ")
            fields, source = before.split(), after.split()
            if len(fields) > 2 and fields[2] == number and len(source) > 1:
                if source[1].startswith("/dev/"):
                    return (
                        self._sys / "class/block" / os.path.basename(os.path.realpath(source[1]))
                    )
                return None
        return None

    def _network_bytes(self) -> tuple[int, int] | None:
        cards = psutil.net_io_counters(pernic=True)
        cards.pop("lo", None)
        real = [name for name in cards if (self._sys / "class/net" / name / "device").exists()]
        # Bridges and tunnels repeat what the real cards carry; a container has no real ones.
        counted = [cards[name] for name in real or cards]
        if not counted:
            return None
        received = sum(card.bytes_recv for card in counted)
        return received, sum(card.bytes_sent for card in counted)


def _rates(
    before: _Counters | None, now: _Counters, name: str
) -> tuple[float | None, float | None]:
    """MB per second; a counter that went back was another device's."""
    older = getattr(before, name) if before else None
    newer = getattr(now, name)
    span = now.at - before.at if before else 0.0
    if older is None or newer is None or span <= 0 or newer[0] < older[0] or newer[1] < older[1]:
        return None, None
    return (newer[0] - older[0]) / span / _MB, (newer[1] - older[1]) / span / _MB
