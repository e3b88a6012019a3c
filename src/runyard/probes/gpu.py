"""GPUs as NVML shows them; quietly none where there is no driver."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from runyard.domain.resources import Gpu
from runyard.probes import device_holders, gpu_readings
from runyard.probes.base import GpuProcess
from runyard.probes.gpu_readings import XidWatch
from runyard.probes.gpu_topology import group_names
from runyard.probes.readings import GpuReading

# What a machine has changes only when a GPU fails or a driver is loaded.
INVENTORY_S = 60.0
# Less memory than this without a process that is named for it is the driver's own.
UNEXPLAINED_MB = 256
_DRIVER_FILES = ("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg")


@dataclass(frozen=True, slots=True)
class _Device:
    gpu: Gpu
    handle: Any
    minor: int


class NvmlProbe:
    """`pool` restricts it to GPUs with these indexes."""

    def __init__(
        self,
        pool: Iterable[int] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        library: Any = None,
    ) -> None:
        self._pool = None if pool is None else frozenset(pool)
        self._clock = clock
        self._library = library  # pynvml, or something with the same functions
        self._initialised = False
        self._lock = threading.Lock()
        self._devices: dict[str, _Device] = {}
        self._looked_at: float | None = None
        self._xids: XidWatch | None = None

    def gpus(self) -> list[Gpu]:
        return [device.gpu for device in self._inventory().values()]

    def processes(self, uuid: str) -> list[GpuProcess]:
        device = self._inventory().get(uuid)
        if device is None:
            return []
        named = self._named(device)
        alive = {pid: used for pid, used in named.items() if device_holders.is_alive(pid)}
        if len(alive) < len(named) or self._unexplained(device, named):
            # Forked workers keep the memory of a dead parent, under the parent's number.
            holders = device_holders.cuda_holders(device.minor)
            for pid in holders:
                alive.setdefault(pid, 0)
            if not holders:  # somebody we cannot see: still somebody
                alive.update(named)
        return [_process(pid, used) for pid, used in sorted(alive.items())]

    def used_mb(self, uuid: str) -> int:
        device = self._inventory().get(uuid)
        return 0 if device is None else self._used_mb(device)

    def readings(self) -> list[GpuReading]:
        devices = self._inventory()
        if not devices:
            return []
        if self._xids is None:
            self._xids = XidWatch(self._library, self._ask)
        xids = self._xids.news({uuid: device.handle for uuid, device in devices.items()})
        return [
            gpu_readings.read(
                self._library,
                self._ask,
                device.gpu,
                device.handle,
                self._used_mb(device),
                xids.get(uuid),
            )
            for uuid, device in devices.items()
        ]

    def memory_by_process(self, uuid: str) -> dict[int, int]:
        device = self._inventory().get(uuid)
        return {} if device is None else self._named(device)

    def close(self) -> None:
        with self._lock:
            if self._xids is not None:
                self._xids.close()
                self._xids = None
            if self._initialised:
                self._ask(self._library.nvmlShutdown)
            self._initialised = False
            self._devices, self._looked_at = {}, None

    def _inventory(self) -> dict[str, _Device]:
        with self._lock:
            now = self._clock()
            if self._looked_at is None or now - self._looked_at >= INVENTORY_S:
                self._looked_at = now
                self._devices = self._look() if self._start() else {}
            return self._devices

    def _start(self) -> bool:
        if self._initialised:
            return True
        if self._library is None:
            if not any(map(os.path.exists, _DRIVER_FILES)):
                return False
            try:
                self._library = importlib.import_module("pynvml")
            except ImportError:
                return False
        self._initialised = self._ask(self._library.nvmlInit, failed=False) is not False
        return self._initialised

    def _look(self) -> dict[str, _Device]:
        nvml = self._library
        handles = {}
        for index in range(self._ask(nvml.nvmlDeviceGetCount, failed=0)):
            if self._pool is None or index in self._pool:
                handle = self._ask(nvml.nvmlDeviceGetHandleByIndex, index)
                if handle is not None:  # one that fell off the bus is not there
                    handles[index] = handle
        groups = group_names(nvml, handles)
        found = {}
        for index, handle in handles.items():
            uuid = self._ask(nvml.nvmlDeviceGetUUID, handle)
            if uuid is None:
                continue
            memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
            gpu = Gpu(
                index=index,
                uuid=_text(uuid),
                name=_text(self._ask(nvml.nvmlDeviceGetName, handle, failed="GPU")),
                memory_mb=0 if memory is None else int(memory.total) >> 20,
                group=groups[index],
            )
            minor = self._ask(nvml.nvmlDeviceGetMinorNumber, handle, failed=index)
            found[gpu.uuid] = _Device(gpu, handle, int(minor))
        return found

    def _named(self, device: _Device) -> dict[int, int]:
        """Process -> MB, as the driver says; a process may appear once per kind of use."""
        nvml = self._library
        found: dict[int, int] = {}
        for ask in (
            nvml.nvmlDeviceGetComputeRunningProcesses,
            nvml.nvmlDeviceGetGraphicsRunningProcesses,
        ):
            for process in self._ask(ask, device.handle, failed=()):
                used = int(process.usedGpuMemory or 0) >> 20
                found[process.pid] = max(found.get(process.pid, 0), used)
        return found

    def _unexplained(self, device: _Device, named: dict[int, int]) -> bool:
        if any(used == 0 for used in named.values()):  # the driver does not tell amounts here
            return False
        return self._used_mb(device) - sum(named.values()) > UNEXPLAINED_MB

    def _used_mb(self, device: _Device) -> int:
        nvml = self._library
        # the second version leaves out what the driver reserves for itself
        newer = getattr(nvml, "nvmlMemory_v2", None)
        memory = None
        if newer is not None:
            memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, device.handle, newer)
        if memory is None:
            memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, device.handle)
        return 0 if memory is None else int(memory.used) >> 20

    def _ask(self, function: Callable[..., Any], *arguments: Any, failed: Any = None) -> Any:
        """NVML's answer, or `failed`: a GPU may vanish between any two questions, and an old
        driver may not know the question."""
        try:
            return function(*arguments)
        except self._library.NVMLError:
            return failed


def _process(pid: int, used_mb: int) -> GpuProcess:
    return GpuProcess(
        pid,
        used_mb,
        device_holders.user_of(pid),
        device_holders.name_of(pid),
        device_holders.is_alive(pid),
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
