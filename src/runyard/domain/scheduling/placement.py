"""The pass: which waiting jobs start now, where, with what; and why the others wait.

Strict queue order with backfill: a job that does not fit holds up nobody behind it, until it has
waited `starvation_s`; then it gets a reservation. The work depends on the number of shapes and
machines and on what starts, never on how many jobs wait.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from runyard.domain import reasons
from runyard.domain.reasons import Reason
from runyard.domain.scheduling import avoiding
from runyard.domain.scheduling.gang import Chosen, fit_gang, slices_of
from runyard.domain.scheduling.queue_order import QueueWalk
from runyard.domain.scheduling.reservations import carried_over, reserve, reserve_gang
from runyard.domain.scheduling.room import Room
from runyard.domain.scheduling.view import (
    AttemptView,
    Decision,
    MachineView,
    Placement,
    QueueView,
    Reservation,
    ShapeView,
    WaitingJobView,
)
from runyard.domain.scheduling.wait_reasons import (
    executor_of,
    lasting_reason,
    passing_reason,
    runs_on,
)


def decide(view: QueueView) -> Decision:
    return _Pass(view).run()


class _Pass:
    def __init__(self, view: QueueView) -> None:
        self.view = view
        self.room = Room(view.attempts, view.ports_from)
        self.running = len(view.attempts)
        self.of_array = Counter(
            attempt.array_id for attempt in view.attempts if attempt.array_id is not None
        )
        self.reserved: dict[str, Reservation] = {}  # by machine
        self.before: dict[int, list[Reservation]] = {}
        for kept in view.reservations:
            self.before.setdefault(kept.job_id, []).append(kept)
        self.placements: list[Placement] = []
        self.waits: dict[int, Reason] = {}
        self.walk = QueueWalk(view.shapes)
        self._lasting: dict[int, Reason | None] = {}
        self._candidates: dict[int, list[MachineView]] = {}

    def run(self) -> Decision:
        for shape, job in self.walk:
            blocked = self.obstacle(shape)
            other = None if blocked else self.elsewhere(shape, job)
            reason = blocked or self.start(shape, job, other or self.candidates(shape))
            if reason is not None and other:
                self.waits.setdefault(shape.id, reason)  # its own; those behind it may fit
            elif reason is not None:
                self.waits[shape.id] = reason
                self.walk.leave_out(shape.id)  # what is free only shrinks during a pass
        for shape in self.view.shapes:
            if shape.more and shape.id not in self.waits:
                self.waits[shape.id] = self.obstacle(shape) or Reason(reasons.QUEUED)
        kept = carried_over(self.view.reservations, self.unplaced(), self.reserved)
        reservations = (*self.reserved.values(), *kept)
        return Decision(tuple(self.placements), self.waits, reservations, self.room.ports_from)

    def obstacle(self, shape: ShapeView) -> Reason | None:
        """What keeps every job of the shape from starting, wherever there is room."""
        if shape.id not in self._lasting:
            self._lasting[shape.id] = lasting_reason(shape, self.view.machines)
        lasting = self._lasting[shape.id]
        if lasting is not None:
            return lasting
        if not self.view.dispatching:
            return Reason(reasons.DISPATCH_PAUSED)
        if not self.candidates(shape):
            return Reason(reasons.NODE_DRAINED)
        if shape.array_id is not None and 0 < shape.array_limit <= self.of_array[shape.array_id]:
            running = self.of_array[shape.array_id]
            return Reason(reasons.ARRAY_LIMIT, {"limit": shape.array_limit, "running": running})
        if self.running >= self.view.max_concurrent:
            limit = self.view.max_concurrent
            return Reason(reasons.MAX_CONCURRENT, {"limit": limit, "running": self.running})
        return None

    def elsewhere(self, shape: ShapeView, job: WaitingJobView) -> list[MachineView] | None:
        """Where the job may be placed only, if it avoids some GPUs."""
        return avoiding.elsewhere(shape, job, self.candidates(shape), self.view.now)

    def start(
        self, shape: ShapeView, job: WaitingJobView, machines: list[MachineView]
    ) -> Reason | None:
        """Place the job where it fits best; else why not, with a reservation if it starves."""
        chosen = self.best_fit(shape, machines)
        if chosen:
            self.take(shape, job, chosen)
            return None
        reason = passing_reason(shape, machines, self.room, self.reservation_on)
        if self.view.now - job.queued_at >= self.view.starvation_s:
            self.keep_room(shape, job, machines)
        return avoiding.told(reason, job, self.candidates(shape))

    def best_fit(self, shape: ShapeView, machines: list[MachineView]) -> Chosen | None:
        if shape.nodes > 1:
            return fit_gang(shape, machines, self.room, self.reservation_on)
        fits = []
        for machine in machines:
            if machine.closed_gates:
                continue
            fit = self.room.fit(machine, shape.first_request, self.reservation_on(machine))
            if fit is not None:
                fits.append((machine, fit))
        if len(fits) <= 1:
            return fits
        return [min(fits, key=lambda item: self.room.looseness(item[0], shape.request, item[1]))]

    def take(self, shape: ShapeView, job: WaitingJobView, chosen: Chosen) -> None:
        parts = tuple(
            AttemptView(machine.machine_id, machine.node_id, shape.request, fit.gpus, fit.ports)
            for machine, fit in chosen
        )
        first, (machine, fit) = parts[0], chosen[0]
        self.room.give(first if len(parts) == 1 else replace(first, slices=parts))
        self.running += 1
        if shape.array_id is not None:
            self.of_array[shape.array_id] += 1
        self.placements.append(
            Placement(
                job.job_id,
                shape.id,
                machine.node_id,
                machine.machine_id,
                fit.gpus if len(chosen) == 1 else tuple(g for _, one in chosen for g in one.gpus),
                fit.ports,
                executor_of(shape, machine),
                slices_of(chosen),
            )
        )

    def keep_room(
        self, shape: ShapeView, job: WaitingJobView, machines: list[MachineView]
    ) -> None:
        open_machines = [m for m in machines if m.machine_id not in self.reserved]
        before = self.before.get(job.job_id, [])
        keep = reserve if shape.nodes == 1 else reserve_gang
        for made in keep(shape, job, open_machines, self.room, before, self.view.now):
            self.reserved[made.machine_id] = made

    def candidates(self, shape: ShapeView) -> list[MachineView]:
        """The machines that could ever run the shape and take new jobs."""
        found = self._candidates.get(shape.id)
        if found is None:
            found = self._candidates[shape.id] = [
                machine
                for machine in self.view.machines
                if not machine.drained and runs_on(shape, machine)
            ]
        return found

    def reservation_on(self, machine: MachineView) -> Reservation | None:
        return self.reserved.get(machine.machine_id)

    def unplaced(self) -> list[ShapeView]:
        placed = {placement.job_id for placement in self.placements}
        return [
            shape
            for shape in self.view.shapes
            if shape.jobs and shape.jobs[0].job_id not in placed
        ]
