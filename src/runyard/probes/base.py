"""The probe port: what the machine has and how busy it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from runyard.domain.monitoring.series import Sample
from runyard.domain.resources import Gpu, Load


@dataclass(frozen=True, slots=True)
class GpuProcess:
    pid: int
    memory_mb: int
    user: str = ""
    name: str = ""


class MachineProbe(Protocol):
    """Every call is cheap (under a few milliseconds) and never raises for a missing device."""

    def machine_id(self) -> str: ...
    def boot_id(self) -> str: ...
    def cpu_milli(self) -> int:
        """Usable CPUs: affinity and cgroup quota considered."""
        ...

    def memory_mb(self) -> int:
        """Usable memory: the cgroup limit considered."""
        ...

    def load(self) -> Load:
        """CPU is an average over the last 30 s."""
        ...


class GpuProbe(Protocol):
    """Quietly empty without a driver."""

    def gpus(self) -> list[Gpu]:
        """Without fences, holders and locks, which others know."""
        ...

    def processes(self, uuid: str) -> list[GpuProcess]:
        """Processes the driver names, plus those that hold the device open."""
        ...

    def used_mb(self, uuid: str) -> int: ...


@dataclass(frozen=True, slots=True)
class EventReading:
    samples: list[Sample]  # with the names as they were written
    offset: int  # where to go on
    more: bool  # there is more to read now


class EventFiles(Protocol):
    """Metrics that trainings write to files for other programs. Never raises: a file may be half
    written, damaged, or gone."""

    def find(self, folder: str, since: float) -> list[str]:
        """Such files below a folder that were written since."""
        ...

    def read(self, path: str, offset: int, since: float, most: int) -> EventReading:
        """About `most` bytes from `offset` on; events older than `since` are left out."""
        ...
