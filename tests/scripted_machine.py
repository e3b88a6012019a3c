"""A large idle machine, as both probes see it; its GPUs and its load are what a test says."""

from __future__ import annotations

from runyard.domain.resources import Gpu, Load
from runyard.probes.base import GpuProcess


class ScriptedMachine:
    def __init__(self, gpu_count: int = 0, machine_id: str = "machine-1") -> None:
        self._machine_id = machine_id
        self._gpus = [Gpu(n, f"GPU-{n}", "NVIDIA H100", 81_920) for n in range(gpu_count)]
        self.measured = Load(1.0, 2.0, 3.0)
        self.used: dict[str, int] = {}  # GPU uuid -> MB
        self.on_gpu: dict[str, list[GpuProcess]] = {}
        self.tags: dict[int, int] = {}  # pid -> fingerprint of the attempt it belongs to
        self.asked = 0  # how often for the processes of a GPU
        self.listening: frozenset[int] = frozenset()
        self.asked_for_ports = 0

    def machine_id(self) -> str:
        return self._machine_id

    def boot_id(self) -> str:
        return "boot-1"

    def cpu_milli(self) -> int:
        return 64_000

    def memory_mb(self) -> int:
        return 256 * 1024

    def load(self) -> Load:
        return self.measured

    def listening_ports(self) -> frozenset[int]:
        self.asked_for_ports += 1
        return self.listening

    def gpus(self) -> list[Gpu]:
        return list(self._gpus)

    def processes(self, uuid: str) -> list[GpuProcess]:
        self.asked += 1
        return list(self.on_gpu.get(uuid, ()))

    def used_mb(self, uuid: str) -> int:
        return self.used.get(uuid, 0)

    def tag_of(self, pid: int) -> int | None:
        return self.tags.get(pid)
