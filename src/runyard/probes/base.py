"""The probe port: what the machine has and how busy it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runyard.domain.monitoring.series import Sample
from runyard.domain.resources import Gpu, Load


@dataclass(frozen=True, slots=True)
class GpuProcess:
    pid: int
    memory_mb: int
    user: str = ""
    name: str = ""
    alive: bool = True  # False: only the driver still names it, or it cannot be seen from here


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

    def listening_ports(self) -> frozenset[int]:
        """Ports that any process of the machine listens on now."""
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
class KernelLine:
    at: float
    text: str
    gpu_uuid: str = ""  # of the GPU it speaks of, where that is known


class KernelNews(Protocol):
    """What the kernel said about memory and GPUs. Cheap, and quietly empty where it is secret."""

    def since(self, at: float) -> Sequence[KernelLine]: ...


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


@dataclass(frozen=True, slots=True)
class CheckedCheckpoint:
    """What the check of one checkpoint found; `why` has a code and parameters where it is not
    good. `hashed`: every hash of its manifest was compared."""

    path: str
    verdict: str  # good, unknown, bad, gone
    family: str | None = None
    step: int | None = None  # as the checkpoint itself tells it
    size_bytes: int = 0
    saved_at: float = 0.0
    hashed: bool = False
    why: Mapping[str, Any] | None = None


class CheckpointCheck(Protocol):
    """Whether checkpoints are whole. Never raises, never loads what is in them."""

    def check(
        self, paths: Sequence[str], *, seconds: float, settle_s: float = 0.0
    ) -> list[CheckedCheckpoint]:
        """In their order; those it had no time for are missing. What was written to within the
        last `settle_s` is told as unknown."""
        ...
