"""Stands in for pynvml: the functions the probe calls, answered from a description of GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace


class NVMLError(Exception):
    pass


@dataclass
class ScriptedGpu:
    uuid: object
    name: object = "NVIDIA H100"
    total: int = 80 << 30
    used: int = 0
    minor: int = 0
    bus_id: object = "00000000:1B:00.0"
    compute: list[tuple[int, int | None]] = field(default_factory=list)
    graphics: list[tuple[int, int | None]] = field(default_factory=list)
    linked: tuple[int, ...] = ()
    util: int = 0
    degrees: int = 40
    milliwatts: int = 70_000
    ecc: int = 0
    slowed: int = 0  # bits of the reasons
    broken: frozenset[str] = frozenset()


class ScriptedNvml:
    NVMLError = NVMLError
    NVML_P2P_CAPS_INDEX_NVLINK = 2
    NVML_P2P_STATUS_OK = 0
    nvmlMemory_v2 = 2

    def __init__(self, *gpus, driver=True, newer=True):
        self.gpus = list(gpus)
        self.driver = driver
        self.newer = newer
        self.calls = []
        self.events = []  # (GPU index, kind, number), told once
        self.registered = set()

    def nvmlInit(self):
        self.calls.append("init")
        if not self.driver:
            raise NVMLError("driver not loaded")

    def nvmlShutdown(self):
        self.calls.append("shutdown")

    def nvmlDeviceGetCount(self):
        self.calls.append("count")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self._checked(index, "handle", index)

    def nvmlDeviceGetUUID(self, handle):
        return self._checked(handle, "uuid", self.gpus[handle].uuid)

    def nvmlDeviceGetName(self, handle):
        return self._checked(handle, "name", self.gpus[handle].name)

    def nvmlDeviceGetMinorNumber(self, handle):
        return self._checked(handle, "minor", self.gpus[handle].minor)

    def nvmlDeviceGetPciInfo(self, handle):
        return self._checked(handle, "pci", SimpleNamespace(busId=self.gpus[handle].bus_id))

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):
        if version is not None and not self.newer:
            raise NVMLError("not supported")
        gpu = self.gpus[handle]
        reserved = 0 if version is not None else 500 << 20
        return self._checked(
            handle, "memory", SimpleNamespace(total=gpu.total, used=gpu.used + reserved)
        )

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return self._checked(handle, "processes", _processes(self.gpus[handle].compute))

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle):
        return self._checked(handle, "graphics", _processes(self.gpus[handle].graphics))

    def nvmlDeviceGetP2PStatus(self, one, other, index):
        assert index == self.NVML_P2P_CAPS_INDEX_NVLINK
        self._checked(one, "p2p", None)
        return 0 if other in self.gpus[one].linked else 5

    def nvmlDeviceGetUtilizationRates(self, handle):
        return self._checked(handle, "util", SimpleNamespace(gpu=self.gpus[handle].util))

    def nvmlDeviceGetTemperature(self, handle, sensor):
        assert sensor == 0
        return self._checked(handle, "temperature", self.gpus[handle].degrees)

    def nvmlDeviceGetPowerUsage(self, handle):
        return self._checked(handle, "power", self.gpus[handle].milliwatts)

    def nvmlDeviceGetTotalEccErrors(self, handle, kind, counter):
        assert (kind, counter) == (1, 1)  # uncorrected, since ever
        return self._checked(handle, "ecc", self.gpus[handle].ecc)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self._checked(handle, "reasons", self.gpus[handle].slowed)

    def nvmlEventSetCreate(self):
        self.calls.append("events")
        return self.events

    def nvmlDeviceRegisterEvents(self, handle, kinds, events):
        assert kinds == 8
        assert events is self.events
        self._checked(handle, "events", None)
        self.registered.add(handle)

    def nvmlEventSetWait_v2(self, events, timeout_ms):
        assert timeout_ms == 0
        if not events:
            raise NVMLError("timeout")
        handle, kind, number = events.pop(0)
        return SimpleNamespace(device=handle, eventType=kind, eventData=number)

    def nvmlEventSetFree(self, events):
        assert events is self.events
        self.calls.append("events freed")

    def _checked(self, handle, question, answer):
        if question in self.gpus[handle].broken:
            raise NVMLError(question)
        return answer


def _processes(described):
    return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in described]
