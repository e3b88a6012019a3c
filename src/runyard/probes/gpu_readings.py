"""One reading of one GPU by NVML, and errors (Xid) as the driver tells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runyard.domain.resources import Gpu
from runyard.probes.readings import GpuReading

Ask = Callable[..., Any]

# Reasons why the clocks are lower than they could be; a plain power limit is how most GPUs work.
_HARDWARE_SLOWDOWN = 0x08
_SOFTWARE_THERMAL = 0x20
_HARDWARE_THERMAL = 0x40
_POWER_BRAKE = 0x80
_TROUBLE = _HARDWARE_SLOWDOWN | _SOFTWARE_THERMAL | _HARDWARE_THERMAL | _POWER_BRAKE
_XID_EVENT = 0x08
_MOST_EVENTS = 100  # of one look: a GPU that fails may tell of nothing else
_CORE_SENSOR = 0
_UNCORRECTED = 1
_SINCE_EVER = 1


def read(
    nvml: Any, ask: Ask, gpu: Gpu, handle: Any, used_mb: int, xids: tuple[int, ...] | None
) -> GpuReading:
    """`ask` answers None where a question fails."""
    rates = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    power = ask(nvml.nvmlDeviceGetPowerUsage, handle)
    return GpuReading(
        index=gpu.index,
        uuid=gpu.uuid,
        util=None if rates is None else float(rates.gpu),
        memory_mb=float(used_mb),
        memory_percent=100.0 * used_mb / gpu.memory_mb if gpu.memory_mb else None,
        temperature=_float(ask(nvml.nvmlDeviceGetTemperature, handle, _CORE_SENSOR)),
        power_w=None if power is None else power / 1000,
        ecc_errors=ask(nvml.nvmlDeviceGetTotalEccErrors, handle, _UNCORRECTED, _SINCE_EVER),
        xids=xids,
        throttled=_throttled(nvml, ask, handle),
    )


def _throttled(nvml: Any, ask: Ask, handle: Any) -> bool | None:
    question = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    reasons = ask(question or nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    return None if reasons is None else bool(reasons & _TROUBLE)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


class XidWatch:
    """Hears of errors of the GPUs it was told of; the driver keeps them until they are asked for.
    Where the driver does not tell (old ones, some containers), nothing is known."""

    def __init__(self, nvml: Any, ask: Ask) -> None:
        self._nvml = nvml
        self._ask = ask
        self._events: Any = None
        self._registered: dict[str, bool] = {}

    def news(self, handles: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """GPU uuid -> the errors since the last look, the first of them first: what follows a
        fault is told after it. GPUs of which nothing can be told are left out."""
        for uuid, handle in handles.items():
            if uuid not in self._registered:
                self._registered[uuid] = self._register(handle)
        found: dict[str, list[int]] = {uuid: [] for uuid in handles if self._registered[uuid]}
        for _ in range(_MOST_EVENTS if found else 0):
            event = self._ask(self._nvml.nvmlEventSetWait_v2, self._events, 0)
            if event is None:
                break
            uuid = self._ask(self._nvml.nvmlDeviceGetUUID, event.device)
            uuid = uuid.decode() if isinstance(uuid, bytes) else uuid
            if uuid in found and event.eventType & _XID_EVENT:
                found[uuid].append(int(event.eventData))
        return {uuid: tuple(numbers) for uuid, numbers in found.items()}

    def close(self) -> None:
        if self._events is not None:
            self._ask(self._nvml.nvmlEventSetFree, self._events)
        self._events, self._registered = None, {}

    def _register(self, handle: Any) -> bool:
        if self._events is None:
            self._events = self._ask(self._nvml.nvmlEventSetCreate)
        if self._events is None:
            return False
        failed = object()
        answer = self._ask(
            self._nvml.nvmlDeviceRegisterEvents, handle, _XID_EVENT, self._events, failed=failed
        )
        return answer is not failed
