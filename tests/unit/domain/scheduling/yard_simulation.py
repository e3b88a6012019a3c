"""A queue and machines in memory that are driven by real passes, with every promise checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from runyard.domain.resources import Request
from runyard.domain.scheduling import placement
from runyard.domain.scheduling.gpu_choice import usable
from runyard.domain.scheduling.queue_order import order_key
from runyard.domain.scheduling.view import (
    AttemptView,
    MachineView,
    QueueView,
    ShapeView,
    WaitingJobView,
)
from runyard.domain.slices import Gang


@dataclass
class SimulatedJob:
    job_id: int
    priority: object
    request: Request
    queued_at: float
    array: tuple[str, int] | None = None
    ends_at: float = 0.0
    lasts: float = 0.0
    gang: Gang | None = None


@dataclass
class Simulation:
    machines: list[MachineView]
    max_concurrent: int
    starvation_s: float = 100.0
    now: float = 0.0
    waiting: dict[int, SimulatedJob] = field(default_factory=dict)
    running: dict[int, tuple[SimulatedJob, AttemptView]] = field(default_factory=dict)
    started_at: dict[int, float] = field(default_factory=dict)
    reservations: tuple = ()
    ports_from: int = 0
    _count: int = 0

    def submit(self, priority, request, lasts=10.0, array=None, gang=None):
        self._count += 1
        job = SimulatedJob(self._count, priority, request, self.now, array, lasts=lasts, gang=gang)
        self.waiting[job.job_id] = job
        return job.job_id

    def end(self, job_id):
        del self.running[job_id]

    def end_due(self):
        for job_id in [
            job_id for job_id, (job, _) in self.running.items() if job.ends_at <= self.now
        ]:
            self.end(job_id)

    def one_pass(self):
        decision = placement.decide(self.view())
        self.reservations = decision.reservations
        self.ports_from = decision.ports_from
        self.check_order(decision)
        for placed in decision.placements:
            self.start(placed)
        self.check_amounts()
        assert set(decision.waits) == {self.shape_id(job) for job in self.waiting.values()}
        return decision

    def view(self):
        shapes = {}
        for job in sorted(self.waiting.values(), key=_key):
            shapes.setdefault(self.shape_id(job), []).append(job)
        slots = max(1, self.max_concurrent - len(self.running))
        return QueueView(
            shapes=tuple(
                ShapeView(
                    shape_id,
                    jobs[0].priority,
                    jobs[0].request,
                    tuple(
                        WaitingJobView(j.job_id, j.queued_at, str(j.job_id)) for j in jobs[:slots]
                    ),
                    array_id=jobs[0].array[0] if jobs[0].array else None,
                    array_limit=jobs[0].array[1] if jobs[0].array else 0,
                    more=len(jobs) > slots,
                    gang=jobs[0].gang,
                )
                for shape_id, jobs in shapes.items()
            ),
            machines=tuple(self.machines),
            attempts=tuple(attempt for _, attempt in self.running.values()),
            max_concurrent=self.max_concurrent,
            now=self.now,
            starvation_s=self.starvation_s,
            reservations=self.reservations,
            ports_from=self.ports_from,
        )

    def shape_id(self, job):
        return hash((job.priority, job.request, job.array, job.gang))

    def start(self, placed):
        job = self.waiting.pop(placed.job_id)
        job.ends_at = self.now + job.lasts
        self.started_at[job.job_id] = self.now
        attempt = AttemptView(
            placed.machine_id,
            placed.node_id,
            job.request,
            placed.gpus,
            placed.ports,
            job.array[0] if job.array else None,
            self.now,
            None,
            tuple(
                AttemptView(part.machine_id, part.node_id, job.request, part.gpus, part.ports)
                for part in placed.slices
            ),
        )
        self.check_gang(job, placed)
        self.running[job.job_id] = (job, attempt)

    def check_gang(self, job, placed):
        """All slices or none, on nodes of one cluster, spread where that was asked for, and the
        port where the ranks meet is the first slice's."""
        extra = 0 if job.gang is None else 1
        parts = placed.slices
        if not parts:
            assert job.gang is None or job.gang.nodes == 1
            assert len(placed.ports) == job.request.port_count + extra
            return
        assert len(parts) == (1 if job.gang is None else job.gang.nodes)
        assert [part.index for part in parts] == list(range(len(parts)))
        assert len({part.cluster for part in parts}) == 1
        if job.gang is not None and job.gang.placement == "spread":
            assert len({part.machine_id for part in parts}) == len(parts)
        for part in parts:
            meets = extra if part.index == 0 else 0
            assert len(part.ports) == job.request.port_count + meets
            assert sum(grant.milli for grant in part.gpus) == job.request.gpu_milli
        assert placed.gpus == tuple(grant for part in parts for grant in part.gpus)

    def check_order(self, decision):
        """Jobs alike but for their place in the queue start in that order: a later one never
        starts while an earlier one of the same needs waits."""
        placed = {placement.job_id for placement in decision.placements}
        latest = {}
        for job_id in placed:
            job = self.waiting[job_id]
            kind = (job.request, job.array, job.gang)
            latest[kind] = max(latest.get(kind, _key(job)), _key(job))
        for job in self.waiting.values():
            kind = (job.request, job.array, job.gang)
            if job.job_id not in placed and kind in latest:
                assert _key(job) > latest[kind], "a later job overtook one that fits the same slot"

    def check_amounts(self):
        assert len(self.running) <= self.max_concurrent
        attempts = [attempt for _, attempt in self.running.values()]
        arrays = Counter(attempt.array_id for attempt in attempts if attempt.array_id)
        for job, _ in self.running.values():
            if job.array and job.array[1]:
                assert arrays[job.array[0]] <= job.array[1]
        for machine in self.machines:
            parts = [part for attempt in attempts for part in attempt.slices or (attempt,)]
            here = [part for part in parts if part.machine_id == machine.machine_id]
            self.check_machine(machine, here)

    def check_machine(self, machine, here):
        capacity = machine.capacity
        assert sum(attempt.request.cpu_milli for attempt in here) <= capacity.cpu_milli
        assert sum(attempt.request.memory_mb for attempt in here) <= capacity.memory_mb
        ports = [port for attempt in here for port in attempt.ports]
        assert len(ports) == len(set(ports))
        pool = range(capacity.port_first, capacity.port_first + capacity.port_count)
        assert all(port in pool and port not in machine.busy_ports for port in ports)
        share = Counter()
        known = {gpu.uuid: gpu for gpu in capacity.gpus}
        for attempt in here:
            assert sum(grant.milli for grant in attempt.gpus) == attempt.request.gpu_milli
            assert len({grant.uuid for grant in attempt.gpus}) == len(attempt.gpus)
            assert len(attempt.ports) - attempt.request.port_count in (0, 1)
            for grant in attempt.gpus:
                share[grant.uuid] += grant.milli
                assert usable(known[grant.uuid])
        assert all(milli <= 1000 for milli in share.values())


def _key(job):
    return order_key(job.priority, job.queued_at, job.job_id)
