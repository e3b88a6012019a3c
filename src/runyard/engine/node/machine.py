"""What this machine has and how busy it is, as last measured, for the scheduler and for people."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from runyard.domain.resources import Capacity, Gpu, Holder, Load
from runyard.domain.scheduling.gates import GateLimits, Gates, update_gates
from runyard.probes.base import GpuProbe, GpuProcess, MachineProbe
from runyard.settings import Settings
from runyard.stores.base_machines import Node

# A GPU may be taken by somebody else at any time: a pass that wants one looks again after this.
GPU_FRESH_S = 1.0
PORTS_FRESH_S = 0.5


class Machine:
    """Measured by `refresh`; reading its fields costs nothing."""

    def __init__(
        self,
        settings: Settings,
        probe: MachineProbe,
        gpu_probe: GpuProbe,
        locked_elsewhere: Callable[[str], bool],
        tag_of: Callable[[int], int | None],
        live_tags: Callable[[], set[int]],
        clock: Callable[[], float],
    ) -> None:
        self._probe = probe
        self._gpu_probe = gpu_probe
        self._locked_elsewhere = locked_elsewhere
        self._tag_of = tag_of
        self._live_tags = live_tags
        self._clock = clock
        self._lock = threading.Lock()
        self._lease_s = settings.server_lease_s
        self._limits = GateLimits(settings.gate_cpu, settings.gate_memory, settings.gate_disk)
        self._gpus_seen_at = 0.0
        self._ports_seen_at = 0.0
        self._busy_ports: frozenset[int] = frozenset()
        self.machine_id = probe.machine_id()
        self.boot_id = probe.boot_id()
        self.drained = False
        self.executors: tuple[str, ...] = ()  # those that can start something here now
        self.heard_at = 0.0  # when the store last took our word that we live, by a steady clock
        self.offered: tuple[Node, ...] = ()  # machines that executors offer besides this one
        self.missing: dict[str, str] = {}  # executors that can start nothing now: why
        self.fenced: dict[str, str] = {}
        self.load: Load | None = None
        self.gates = Gates()
        first, last = settings.port_range
        self.capacity = Capacity(
            cpu_milli=probe.cpu_milli(),
            memory_mb=probe.memory_mb(),
            gpus=(),
            port_first=first,
            port_count=last - first + 1,
        )

    def usable_executors(self) -> tuple[str, ...]:
        """Those that can start something now, here or on the nodes they offer."""
        elsewhere = {kind: None for node in self.offered for kind in node.executors}
        return (*self.executors, *elsewhere)

    def is_silent(self) -> bool:
        """Whether others of a shared store may have taken over what this server placed."""
        return time.monotonic() - self.heard_at > self._lease_s

    def capacity_for(self, executor: str) -> Capacity:
        """What a job of this executor that asks for nothing gets its fair share of: this machine,
        or the largest of the nodes where only those can run it."""
        nodes = [node for node in self.offered if executor in ("auto", node.kind)]
        if not nodes or (executor == "auto" and self.executors):
            return self.capacity
        largest = max(nodes, key=lambda node: (len(node.capacity.gpus), node.capacity.cpu_milli))
        return largest.capacity

    @property
    def limits(self) -> GateLimits:
        return self._limits

    def refresh(self) -> bool:
        """Measure again; True when a gate opened or closed or a GPU became free or taken."""
        load = self._probe.load()
        with self._lock:
            before = (tuple(gate.gate for gate in self.gates.closed), self.capacity.gpus)
            self.load = load
            self.gates = update_gates(self.gates, load, self._limits)
            self._look_at_gpus()
            return before != (tuple(gate.gate for gate in self.gates.closed), self.capacity.gpus)

    def refresh_gpus(self, *, at_once: bool = False) -> None:
        """Look at the GPUs again unless that was done a moment ago; `at_once` also then."""
        if self.capacity.gpus and (at_once or self._clock() - self._gpus_seen_at > GPU_FRESH_S):
            with self._lock:
                self._look_at_gpus()

    def busy_ports(self) -> frozenset[int]:
        """Ports of the pool that some process listens on, looked at a moment ago."""
        if abs(self._clock() - self._ports_seen_at) > PORTS_FRESH_S:
            first, count = self.capacity.port_first, self.capacity.port_count
            pool = range(first, first + count)
            self._busy_ports = self._probe.listening_ports().intersection(pool)
            self._ports_seen_at = self._clock()
        return self._busy_ports

    def _look_at_gpus(self) -> None:
        seen = self._gpu_probe.gpus()
        ours = self._live_tags() if seen else set()
        gpus = tuple(self._as_seen(gpu, ours) for gpu in seen)
        self._gpus_seen_at = self._clock()
        if gpus != self.capacity.gpus:
            self.capacity = replace(self.capacity, gpus=gpus)

    def _as_seen(self, gpu: Gpu, ours: set[int]) -> Gpu:
        strangers = tuple(
            Holder(process.pid, process.user, process.name)
            for process in self._gpu_probe.processes(gpu.uuid)
            if self._tag_of(process.pid) not in ours
        )
        return replace(
            gpu,
            fenced=gpu.uuid in self.fenced,
            holders=strangers,
            locked_by_other_server=self._locked_elsewhere(gpu.uuid),
        )

    def fence(self, uuid: str, reason: str) -> None:
        """From now on, for whoever places next; the store keeps it."""
        with self._lock:
            self.fenced = {**self.fenced, uuid: reason}
            gpus = tuple(
                replace(gpu, fenced=True) if gpu.uuid == uuid else gpu
                for gpu in self.capacity.gpus
            )
            self.capacity = replace(self.capacity, gpus=gpus)

    def processes(self, uuid: str) -> list[GpuProcess]:
        return self._gpu_probe.processes(uuid)

    def used_mb(self, uuid: str) -> int:
        return self._gpu_probe.used_mb(uuid)
