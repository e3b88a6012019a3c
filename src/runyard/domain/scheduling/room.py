"""What is free on the machines while a pass gives it away, and whether a request fits there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from runyard.domain.resources import Gpu, GpuGrant, Request
from runyard.domain.scheduling.gpu_choice import (
    WHOLE,
    choose_gpus,
    group_count,
    matches_type,
    usable,
)
from runyard.domain.scheduling.port_choice import begin_after, choose_ports
from runyard.domain.scheduling.view import AttemptView, MachineView, Reservation


@dataclass(slots=True)
class Used:
    """What is taken on one machine; grows while a pass places jobs."""

    cpu_milli: int = 0
    memory_mb: int = 0
    gpu_milli: dict[str, int] = field(default_factory=dict)
    ports: set[int] = field(default_factory=set)
    attempts: list[AttemptView] = field(default_factory=list)

    def take(self, attempt: AttemptView) -> None:
        self.cpu_milli += attempt.request.cpu_milli
        self.memory_mb += attempt.request.memory_mb
        for grant in attempt.gpus:
            self.gpu_milli[grant.uuid] = self.gpu_milli.get(grant.uuid, 0) + grant.milli
        self.ports.update(attempt.ports)
        self.attempts.append(attempt)

    def copy(self) -> Used:
        gpus, ports, attempts = dict(self.gpu_milli), set(self.ports), list(self.attempts)
        return Used(self.cpu_milli, self.memory_mb, gpus, ports, attempts)


_NOTHING = Request(0, 0)


class Fit(NamedTuple):
    gpus: tuple[GpuGrant, ...]
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shortage:
    """One resource a request lacks on a machine, in the resource's small units."""

    resource: str  # gpu, cpu, memory, port
    wanted: int
    free: int
    total: int


class Room:
    """Free room by machine: servers on one machine share what it has. `ports_from` is one for all
    machines: several nodes may be one host."""

    def __init__(self, attempts: Iterable[AttemptView] = (), ports_from: int = 0) -> None:
        self.ports_from = ports_from
        self._used: dict[str, Used] = {}
        self._attempts_on: dict[str, int] = {}
        for attempt in attempts:
            self.take(attempt)

    def used(self, machine_id: str) -> Used:
        found = self._used.get(machine_id)
        if found is None:
            found = self._used[machine_id] = Used()
        return found

    def take(self, attempt: AttemptView) -> None:
        for part in attempt.slices or (attempt,):
            self.used(part.machine_id).take(part)
        self._attempts_on[attempt.node_id] = self._attempts_on.get(attempt.node_id, 0) + 1

    def give(self, attempt: AttemptView) -> None:
        """Take what a placement was just granted: the next gets other ports."""
        self.take(attempt)
        ports = [port for part in attempt.slices or (attempt,) for port in part.ports]
        self.ports_from = begin_after(ports, self.ports_from)

    def fit(
        self,
        machine: MachineView,
        request: Request,
        reserved: Reservation | None = None,
        allowed: Callable[[Gpu], bool] = usable,
    ) -> Fit | None:
        """How the request fits there now, beside the reservation; None when it does not."""
        used = self.used(machine.machine_id)
        return self._fit(used, machine, request, reserved, allowed)

    def fits(
        self,
        machine: MachineView,
        requests: Iterable[Request],
        reserved: Reservation | None = None,
    ) -> list[Fit]:
        """How these fit there beside each other, up to the first that does not."""
        used: Used | None = None
        found: list[Fit] = []
        for request in requests:
            here = used or self.used(machine.machine_id)
            fit = self._fit(here, machine, request, reserved, usable)
            if fit is None:
                break
            found.append(fit)
            used = used or here.copy()
            used.take(AttemptView(machine.machine_id, machine.node_id, request, *fit))
        return found

    def shortages(self, machine: MachineView, request: Request) -> list[Shortage]:
        """What is missing there now, the scarcest kind first; empty when it fits."""
        used, capacity = self.used(machine.machine_id), machine.capacity
        missing = []
        if choose_gpus(capacity.gpus, request, used.gpu_milli) is None:
            alike = [gpu for gpu in capacity.gpus if matches_type(request.gpu_type, gpu.name)]
            free = _free_gpu_milli(alike, request, used.gpu_milli)
            missing.append(Shortage("gpu", request.gpu_milli, free, len(alike) * WHOLE))
        for resource, wanted, total, taken in (
            ("cpu", request.cpu_milli, capacity.cpu_milli, used.cpu_milli),
            ("memory", request.memory_mb, capacity.memory_mb, used.memory_mb),
        ):
            if not _enough(wanted, total - taken, 0):
                missing.append(Shortage(resource, wanted, max(0, total - taken), total))
        if self._ports(used, machine, request, 0) is None:
            free = self._free_ports(machine)
            missing.append(Shortage("port", request.port_count, free, capacity.port_count))
        return missing

    def looseness(
        self, machine: MachineView, request: Request, fit: Fit
    ) -> tuple[int, int, int, int, int, int, str]:
        """Smaller is better: few GPU groups, full shared GPUs, whole GPUs left together, CPU jobs
        away from GPUs, tight on CPU and memory, then the less busy of servers that are alike."""
        used, capacity = self.used(machine.machine_id), machine.capacity
        return (
            group_count(capacity.gpus, fit.gpus),
            sum(WHOLE - used.gpu_milli.get(grant.uuid, 0) - grant.milli for grant in fit.gpus),
            sum(1 for gpu in capacity.gpus if not used.gpu_milli.get(gpu.uuid)),
            capacity.cpu_milli - used.cpu_milli - request.cpu_milli,
            capacity.memory_mb - used.memory_mb - request.memory_mb,
            self._attempts_on.get(machine.node_id, 0),
            machine.node_id,
        )

    def _free_ports(self, machine: MachineView) -> int:
        first, count = machine.capacity.port_first, machine.capacity.port_count
        taken = self.used(machine.machine_id).ports | machine.busy_ports
        return count - sum(1 for port in taken if first <= port < first + count)

    def _fit(
        self,
        used: Used,
        machine: MachineView,
        request: Request,
        reserved: Reservation | None,
        allowed: Callable[[Gpu], bool],
    ) -> Fit | None:
        capacity = machine.capacity
        kept, times = _NOTHING, 1
        if reserved is not None:
            kept, times = reserved.request, reserved.slices
        free = capacity.cpu_milli - used.cpu_milli
        if not _enough(request.cpu_milli, free, kept.cpu_milli * times):
            return None
        free = capacity.memory_mb - used.memory_mb
        if not _enough(request.memory_mb, free, kept.memory_mb * times):
            return None
        gpus: tuple[GpuGrant, ...] | None = ()
        if request.gpu_milli:
            held = _kept_gpus(reserved)
            gpus = choose_gpus(capacity.gpus, request, used.gpu_milli, kept=held, allowed=allowed)
        if gpus is None:
            return None
        ports = self._ports(used, machine, request, kept.port_count * times)
        return None if ports is None else Fit(gpus, ports)

    def _ports(
        self, used: Used, machine: MachineView, request: Request, keep: int
    ) -> tuple[int, ...] | None:
        if not request.port_count:
            return ()
        return choose_ports(
            machine.capacity.port_first,
            machine.capacity.port_count,
            request.port_count,
            used.ports | machine.busy_ports,
            keep=keep,
            begin=self.ports_from,
        )


def _enough(wanted: int, free: int, kept: int) -> bool:
    return wanted == 0 or wanted <= free - kept


def _kept_gpus(reserved: Reservation | None) -> Mapping[str, int] | None:
    if reserved is None or not reserved.gpu_uuids:
        return None
    each = reserved.request.gpu_milli if reserved.request.shares_gpu else WHOLE
    if reserved.slices == 1:
        return dict.fromkeys(reserved.gpu_uuids, each)
    # Slices on one machine may share a GPU.
    return {uuid: many * each for uuid, many in Counter(reserved.gpu_uuids).items()}


def _free_gpu_milli(gpus: Iterable[Gpu], request: Request, used: Mapping[str, int]) -> int:
    rooms = [WHOLE - used.get(gpu.uuid, 0) for gpu in gpus if usable(gpu)]
    if request.shares_gpu:
        return max([0, *rooms])
    return sum(room for room in rooms if room >= WHOLE)
