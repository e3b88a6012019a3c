"""Short ways to say what a pass looks at."""

from __future__ import annotations

import pytest

from runyard.domain.job import Priority
from runyard.domain.resources import Capacity, Gpu, Request
from runyard.domain.scheduling import placement
from runyard.domain.scheduling.view import (
    AttemptView,
    MachineView,
    QueueView,
    ShapeView,
    WaitingJobView,
)


class Scene:
    """Builds a queue view step by step; ids count up."""

    def __init__(self):
        self.shapes = []
        self.machines = []
        self.attempts = []
        self.reservations = ()
        self.options = {"max_concurrent": 100, "now": 1000.0}
        self._jobs = 0

    def machine(self, name="m1", cpu=8, memory=16, gpus=(), **more):
        capacity = Capacity(cpu * 1000, memory * 1024, tuple(gpus), 38000, 10)
        more.setdefault("machine_id", f"machine-{name}")
        self.machines.append(MachineView(name, capacity=capacity, **more))
        return self

    def waiting(self, *, count=1, priority="medium", queued_at=900.0, **more):
        """A shape with `count` jobs; returns its id and the ids of its jobs."""
        request = Request(
            int(more.pop("cpu", 1) * 1000),
            int(more.pop("memory", 1) * 1024),
            int(more.pop("gpu", 0) * 1000),
            more.pop("gpu_type", None),
            more.pop("ports", 0),
        )
        jobs = []
        for _ in range(count):
            self._jobs += 1
            jobs.append(WaitingJobView(self._jobs, queued_at, f"job-{self._jobs}"))
        shape = ShapeView(len(self.shapes) + 1, Priority(priority), request, tuple(jobs), **more)
        self.shapes.append(shape)
        return shape.id, [job.job_id for job in jobs]

    def running(self, on="m1", cpu=1, memory=1, gpus=(), ports=(), **more):
        machine = next(machine for machine in self.machines if machine.node_id == on)
        milli = sum(grant.milli for grant in gpus)
        self.attempts.append(
            AttemptView(
                machine.machine_id,
                on,
                Request(int(cpu * 1000), int(memory * 1024), milli, None, len(ports)),
                tuple(gpus),
                tuple(ports),
                **more,
            )
        )
        return self

    def view(self, **options):
        return QueueView(
            tuple(self.shapes),
            tuple(self.machines),
            tuple(self.attempts),
            reservations=self.reservations,
            **{**self.options, **options},
        )

    def decide(self, **options):
        return placement.decide(self.view(**options))


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def make_gpus():
    def make(count, *, group="", name="NVIDIA H100", first=0, **more):
        return [
            Gpu(index, f"GPU-{index}", name, 80000, group, **more)
            for index in range(first, first + count)
        ]

    return make
