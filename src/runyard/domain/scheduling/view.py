"""What a scheduling pass looks at and what it decides, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from runyard.domain.job import Priority
from runyard.domain.reasons import Reason
from runyard.domain.resources import Capacity, GpuGrant, Request
from runyard.domain.scheduling.gates import ClosedGate
from runyard.domain.slices import Gang, Slice


@dataclass(frozen=True, slots=True)
class WaitingJobView:
    job_id: int
    queued_at: float
    ref: str = ""
    avoid: frozenset[str] = frozenset()  # GPUs that it should not get again
    avoid_until: float | None = None  # None: as long as there are others


@dataclass(frozen=True, slots=True)
class ShapeView:
    """Alike waiting jobs. `jobs` are the first ready ones in queue order, at least one and as many
    as there are free slots; `more` says that others may wait behind them. `executor` "auto" takes
    any executor. `array_limit` 0 is no limit. `gang` is None for a job that is not distributed."""

    id: int
    priority: Priority
    request: Request
    jobs: tuple[WaitingJobView, ...]
    executor: str = "auto"
    array_id: str | None = None
    array_limit: int = 0
    more: bool = False
    gang: Gang | None = None

    @property
    def nodes(self) -> int:
        return 1 if self.gang is None else self.gang.nodes

    @property
    def first_request(self) -> Request:
        """What the first node must give: the ranks of a distributed job meet at a port there."""
        if self.gang is None:
            return self.request
        return replace(self.request, port_count=self.request.port_count + 1)


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt that has not ended and holds what it was given: on one machine, or, when it has
    `slices`, what those hold."""

    machine_id: str
    node_id: str
    request: Request
    gpus: tuple[GpuGrant, ...] = ()
    ports: tuple[int, ...] = ()
    array_id: str | None = None
    started_at: float | None = None
    expected_s: float | None = None
    slices: tuple[AttemptView, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineView:
    """One server that can start attempts, or a node that an executor offers (`node` is its name
    of it then). Those on one machine share what it has."""

    node_id: str
    machine_id: str
    capacity: Capacity
    executors: tuple[str, ...] = ("local",)
    drained: bool = False
    closed_gates: tuple[ClosedGate, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)  # executors it lacks now: why
    busy_ports: frozenset[int] = frozenset()  # taken by processes that hold no grant
    node: str = ""
    address: str = ""
    cluster: str = ""  # the nodes of one attempt are all of one cluster


@dataclass(frozen=True, slots=True)
class Reservation:
    """A job that waited too long has first call on this machine: those behind it in the queue may
    use only what it does not need. Kept from pass to pass until the job starts."""

    job_id: int
    ref: str
    shape_id: int
    node_id: str
    machine_id: str
    request: Request
    gpu_uuids: tuple[str, ...] = ()
    slices: int = 1  # so many times the request


@dataclass(frozen=True, slots=True)
class QueueView:
    shapes: tuple[ShapeView, ...]
    machines: tuple[MachineView, ...]
    attempts: tuple[AttemptView, ...]
    max_concurrent: int
    now: float
    dispatching: bool = True
    starvation_s: float = 300.0
    reservations: tuple[Reservation, ...] = ()  # those of the last pass
    ports_from: int = 0  # where to look first, for the nodes of one host share its ports


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a job starts and with what. On nodes of an executor the slices say it; `gpus` are all
    of theirs then, machine and ports those of the first."""

    job_id: int
    shape_id: int
    node_id: str
    machine_id: str
    gpus: tuple[GpuGrant, ...] = ()
    ports: tuple[int, ...] = ()
    executor: str = ""
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """`waits` has one reason for every shape that still has a waiting job after the placements."""

    placements: tuple[Placement, ...] = ()
    waits: Mapping[int, Reason] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()
    ports_from: int = 0  # of the next pass
