"""The machine as psutil and the kernel show it: what this process may use and how busy it is."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import psutil

from runyard.domain.resources import Load
from runyard.probes import cgroup, cpu_use, listening
from runyard.probes.cpu_use import CpuSample, percent

WINDOW_S = 30.0
# Shorter spans say more about the clock's ticks than about the machine.
SHORTEST_S = 1.0
_MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_NETWORK = Path("/sys/class/net")


class PsutilProbe:
    """`disk_path` is on the disk whose fill is measured."""

    def __init__(
        self,
        disk_path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        proc_self: Path = cgroup.PROC_SELF,
    ) -> None:
        self._disk_path = disk_path
        self._clock = clock
        self._groups = cgroup.find_places(proc_self)
        self._lock = threading.Lock()
        self._samples: deque[CpuSample] = deque([self._sample()])

    def machine_id(self) -> str:
        """The same for every server on this machine, after restarts too."""
        known = next(filter(None, map(_read, _MACHINE_ID_FILES)), None)
        # The id is private to the machine: what travels is derived from it.
        return hashlib.sha256(f"runyard {known or _hardware_name()}".encode()).hexdigest()[:32]

    def boot_id(self) -> str:
        return _read(_BOOT_ID_FILE) or f"booted-{psutil.boot_time():.0f}"

    def cpu_milli(self) -> int:
        usable = len(cpu_use.usable_cpus()) * 1000
        quota = cgroup.cpu_quota_milli(self._groups)
        return usable if quota is None else min(usable, quota)

    def memory_mb(self) -> int:
        total = int(psutil.virtual_memory().total)
        limit = cgroup.memory_limit(self._groups)
        return (total if limit is None else min(total, limit)) // (1024 * 1024)

    def load(self) -> Load:
        """CPU over the last 30 s as far as there were calls; 0 during the first second."""
        with self._lock:
            cpu = self._cpu_percent(self._sample())
        return Load(cpu=cpu, memory=self._memory_percent(), disk=_disk_percent(self._disk_path))

    def listening_ports(self) -> frozenset[int]:
        return listening.listening_ports()

    def _cpu_percent(self, newest: CpuSample) -> float:
        samples = self._samples
        while len(samples) > 1 and newest.at - samples[1].at >= WINDOW_S:
            samples.popleft()
        oldest = samples[0]
        if newest.at - samples[-1].at >= SHORTEST_S:
            samples.append(newest)
        if newest.at - oldest.at < SHORTEST_S:
            return 0.0
        return cpu_use.between(oldest, newest, self._groups)

    def _sample(self) -> CpuSample:
        return cpu_use.sample(self._clock(), self._groups)

    def _memory_percent(self) -> float:
        return memory_percent(psutil.virtual_memory().percent, self._groups)


def memory_percent(of_machine: float, groups: cgroup.CgroupPlaces) -> float:
    """Of what may be used: of the machine's, or of the group's limit if that is nearer."""
    group = cgroup.memory_use(groups)
    return of_machine if group is None else max(of_machine, percent(group.used, group.limit))


def _disk_percent(path: Path) -> float:
    while True:
        try:
            return float(psutil.disk_usage(str(path)).percent)
        except FileNotFoundError:
            if path == path.parent:
                return 0.0
            path = path.parent
        except OSError:
            return 0.0


def _hardware_name() -> str:
    """Host name and the addresses of real network cards: stable where there is no machine id."""
    addresses = sorted(
        _read(card / "address") for card in _NETWORK.glob("*") if (card / "device").exists()
    )
    return " ".join([socket.gethostname(), *addresses])


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
