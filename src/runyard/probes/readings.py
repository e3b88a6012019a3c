"""The meter ports: what is measured of a machine and its GPUs again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class NodeReading:
    """None where there is nothing to tell; rates are since the reading before."""

    cpu_percent: float | None
    memory_percent: float
    memory_used_mb: float
    disk_percent: float | None  # of the disk that holds the data directory
    disk_free_gb: float | None
    disk_read_mb_s: float | None
    disk_write_mb_s: float | None
    net_in_mb_s: float | None
    net_out_mb_s: float | None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """None where the GPU or its driver does not tell."""

    index: int
    uuid: str
    util: float | None  # percent
    memory_mb: float | None
    memory_percent: float | None
    temperature: float | None  # degrees Celsius
    power_w: float | None
    ecc_errors: int | None  # uncorrected ones, counted
    xids: tuple[int, ...] | None  # errors since the reading before, the first of them first
    throttled: bool | None  # heat or a lack of power slow it down


class NodeMeter(Protocol):
    """Cheap, and never raises for something missing. One thread reads it."""

    def read(self) -> NodeReading: ...


class GpuMeter(Protocol):
    """Quietly empty without a driver. Cheap; one thread reads it."""

    def readings(self) -> list[GpuReading]: ...
    def memory_by_process(self, uuid: str) -> Mapping[int, int]:
        """Process -> MB, as the driver says; empty where it does not name them."""
        ...
