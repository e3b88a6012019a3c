"""What the kernel says about memory and GPUs: processes it killed, errors of NVIDIA's driver.
Quietly empty where it may not be read."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from runyard.probes.base import KernelLine

DEVICE = "/dev/kmsg"
NVIDIA = Path("/proc/driver/nvidia/gpus")
MOST_KEPT = 500
MOST_RECORDS = 50_000  # of one look: more than any ring holds
MOST_S = 0.5
_RECORD_BYTES = 16 * 1024  # more than one record can have
_LONGEST = 1000
_TELLING = re.compile(
    rb"oom-kill:|[Oo]ut of memory: Kill|NVRM: (?:Xid|GPU at)|SXid|fallen off the bus"
)
_RECORD = re.compile(rb"\d{1,5},\d{1,20},(\d{1,20}),[^;]{0,100};(.{0,4000})")
_BUS = re.compile(r"PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})")
_UUID = re.compile(r"GPU UUID:\s{1,20}(GPU-[0-9a-fA-F-]{1,80})")


class KernelLog:
    """Stays open, so that each look reads only what is new."""

    def __init__(
        self,
        device: str = DEVICE,
        nvidia: Path = NVIDIA,
        clock: Callable[[], float] = time.time,
        running: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device = device
        self._nvidia = nvidia
        self._clock = clock
        self._running = running  # seconds since the machine was started
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._closing: weakref.finalize[[int], KernelLog] | None = None
        self._kept: deque[KernelLine] = deque(maxlen=MOST_KEPT)

    def since(self, at: float) -> list[KernelLine]:
        with self._lock:
            with contextlib.suppress(OSError):
                self._read()
            return [line for line in self._kept if line.at >= at]

    def close(self) -> None:
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._handle = self._closing = None

    def _read(self) -> None:
        if self._handle is None:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            self._handle = os.open(self._device, flags)
            self._closing = weakref.finalize(self, os.close, self._handle)
        started = self._clock() - self._running()
        buses: Mapping[str, str] | None = None
        until = time.monotonic() + MOST_S
        for _ in range(MOST_RECORDS):
            data = _next(self._handle)
            if not data or time.monotonic() > until:
                return
            if not _TELLING.search(data):
                continue
            buses = _buses(self._nvidia) if buses is None else buses
            self._keep(data, started, buses)

    def _keep(self, data: bytes, started: float, buses: Mapping[str, str]) -> None:
        for record in data.split(b"\n"):
            found = _RECORD.match(record)
            if found is None or not _TELLING.search(found.group(2)):
                continue
            text = found.group(2).decode("utf-8", "replace")[:_LONGEST]
            bus = _BUS.search(text)
            gpu = "" if bus is None else buses.get(_plain(bus.group(1)), "")
            self._kept.append(KernelLine(started + int(found.group(1)) / 1e6, text, gpu))


def _next(handle: int) -> bytes:
    """One record, b"" when there is none. What was overwritten before it was read is skipped."""
    while True:
        try:
            return os.read(handle, _RECORD_BYTES)
        except OSError as error:
            if error.errno == errno.EPIPE:
                continue
            if error.errno == errno.EAGAIN:
                return b""
            raise


def _buses(folder: Path) -> dict[str, str]:
    """Where each GPU sits, as the driver tells it."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for place in folder.iterdir():
            uuid = _UUID.search((place / "information").read_text(errors="replace"))
            if uuid is not None:
                found[_plain(place.name)] = uuid.group(1)
    return found


def _plain(bus: str) -> str:
    """`00000000:3B:00.0` and `0000:3b:00` are the same place."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest.partition('.')[0]}"
