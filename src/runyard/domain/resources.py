"""Amounts of CPU, memory, GPU and ports, in whole small units so that sums are exact."""

from __future__ import annotations

from dataclasses import dataclass

MAX_CPU_MILLI = 4096 * 1000
MAX_MEMORY_MB = 64 * 1024 * 1024
MAX_GPU_MILLI = 4096 * 1000


@dataclass(frozen=True, slots=True)
class Request:
    """What one attempt needs. `gpu_milli` is a multiple of 1000, or below that for a share."""

    cpu_milli: int
    memory_mb: int
    gpu_milli: int = 0
    gpu_type: str | None = None
    port_count: int = 0

    @property
    def gpu_whole(self) -> int:
        return self.gpu_milli // 1000

    @property
    def shares_gpu(self) -> bool:
        return 0 < self.gpu_milli < 1000


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that is not ours and uses a GPU."""

    pid: int
    user: str
    name: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of a machine as last seen."""

    index: int
    uuid: str
    name: str
    memory_mb: int
    group: str = ""  # GPUs of one group are close to each other (same NUMA node or NVLink island)
    fenced: bool = False
    holders: tuple[Holder, ...] = ()
    locked_by_other_server: bool = False


@dataclass(frozen=True, slots=True)
class GpuGrant:
    """A share of one GPU held by an attempt; `milli` 1000 is the whole GPU."""

    uuid: str
    index: int
    milli: int


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a machine is, in percent."""

    cpu: float
    memory: float
    disk: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a machine has in all; the port pool is half-open."""

    cpu_milli: int
    memory_mb: int
    gpus: tuple[Gpu, ...] = ()
    port_first: int = 38000
    port_count: int = 200
