"""One scheduling pass: load the queue and the machines, decide (pure), write the placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from runyard.domain import events, reasons, states
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job
from runyard.domain.reasons import Reason
from runyard.domain.scheduling import placement
from runyard.domain.scheduling.gates import Gates, update_gates
from runyard.domain.scheduling.view import (
    AttemptView,
    MachineView,
    Placement,
    QueueView,
    Reservation,
    ShapeView,
    WaitingJobView,
)
from runyard.domain.states import AttemptStatus, JobStatus, Stage
from runyard.engine.launch import start_reasons, starts
from runyard.engine.launch.launching import Placed
from runyard.engine.launch.starts import Start
from runyard.engine.node import executor_nodes
from runyard.engine.parts import Parts
from runyard.engine.schedule import avoided
from runyard.engine.schedule.refused_ports import RefusedPorts
from runyard.stores.base import ActiveAttempt, Reader, Transaction, WaitingJob, WaitingShape

PAUSED_FLAG = "dispatch_paused"
# Most jobs a pass looks at per shape; more slots than that are filled by the next pass.
_MOST_HEADS = 200
_TAG_BITS = 61
_ACTOR = "scheduler"


class Placer:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._reservations: tuple[Reservation, ...] = ()
        self._ports_from = 0
        self.refused_ports = RefusedPorts()
        self.dispatching = False  # until the yard opens, and again when it shuts down
        # No slot was free after the last pass: until something ends, a pass can place nothing.
        self.full = False
        # The last pass stopped at its limit: another should follow at once.
        self.unfinished = False

    def place(self, tx: Transaction, now: float, fresh: Sequence[Job] = ()) -> list[Placed]:
        """Place what fits on this node now, and write why the rest waits where that changed.

        `fresh` are jobs this very transaction has stored: they need not be read again.
        """
        with self._parts.tallies.pass_s.timed():
            return self._place(tx, now, fresh)

    def _place(self, tx: Transaction, now: float, fresh: Sequence[Job]) -> list[Placed]:
        shapes = tx.waiting_shapes()
        if not shapes:
            self.full = False
            return []
        view = self._view(tx, shapes, now)
        decision = placement.decide(view)
        self._reservations = decision.reservations
        self._ports_from = decision.ports_from
        known = {job.id: job for job in fresh}
        placed = [
            self._apply(tx, chosen, known.get(chosen.job_id), now)
            for chosen in decision.placements
        ]
        waits = self._waits(tx, view, decision.waits)
        for shape in shapes:
            # None where nobody of the shape waits any more: the next one starts without a reason.
            reason = waits.get(shape.id)
            if reason != shape.wait:
                tx.set_shape_wait(shape.id, reason)
        left = view.max_concurrent - len(view.attempts) - len(placed)
        self.full = left <= 0
        self.unfinished = left > 0 and len(placed) >= _MOST_HEADS
        return placed

    def look(self, reader: Reader, now: float) -> QueueView:
        """What a pass of any server would look at now; nothing is decided."""
        view = self._view(reader, reader.waiting_shapes(), now)
        if not self._parts.store.shared:
            return view
        return replace(view, machines=view.machines + self._others(reader, view.machines))

    def _waits(
        self, tx: Transaction, view: QueueView, own: Mapping[int, Reason]
    ) -> Mapping[int, Reason]:
        """Why shapes wait. Each server takes what fits on its own machine, so what does not fit
        here has no reason to wait where another server could take it."""
        if not self._parts.store.shared or not own:
            return own
        others = self._others(tx, view.machines)
        anywhere = placement.decide(replace(view, machines=view.machines + others))
        return {shape: anywhere.waits.get(shape, Reason(reasons.QUEUED)) for shape in own}

    def _view(self, tx: Reader, shapes: list[WaitingShape], now: float) -> QueueView:
        settings = self._parts.settings
        active = tx.active_attempts()
        free = settings.max_concurrent - len(active)
        avoid_s = settings.starvation_s
        # What was fetched for a job is on the machine that fetched it.
        shared = self._parts.store.shared
        others = tx.prepared_elsewhere(self._parts.node_id) if shared else set()
        return QueueView(
            shapes=tuple(
                view
                for shape in shapes
                if (view := _shape(tx, shape, min(free, _MOST_HEADS), others, avoid_s)).jobs
            ),
            machines=self._own_machines(tx, now, _want_ports(shapes)),
            attempts=tuple(_attempt(attempt) for attempt in active),
            max_concurrent=settings.max_concurrent,
            now=now,
            dispatching=self.dispatching and tx.flag(PAUSED_FLAG) is None,
            starvation_s=settings.starvation_s,
            reservations=self._reservations,
            ports_from=self._ports_from,
        )

    def _own_machines(self, tx: Reader, now: float, ports: bool) -> tuple[MachineView, ...]:
        """This server's own, and those that its executors offer."""
        machine, drained = self._parts.machine, {}
        if self._parts.store.shared:
            # Somebody may have drained us through another server.
            drained = {node.node_id: node.drained for node in tx.nodes()}
            machine.drained = drained.get(self._parts.node_id, False)
        own = MachineView(
            node_id=self._parts.node_id,
            machine_id=machine.machine_id,
            capacity=machine.capacity,
            executors=machine.executors,
            missing=machine.missing,
            drained=machine.drained,
            closed_gates=machine.gates.closed,
        )
        machines: tuple[MachineView, ...] = (own,)
        if machine.offered and not (self._parts.store.shared and machine.is_silent()):
            machines = (own, *executor_nodes.views(machine.offered, drained))
        return tuple(self._with_ports(one, now) for one in machines) if ports else machines

    def _with_ports(self, view: MachineView, now: float) -> MachineView:
        """With the ports that nobody holds a grant of and that cannot be used all the same."""
        machine = self._parts.machine
        busy = self.refused_ports.of(view.machine_id, now)
        if view.machine_id == machine.machine_id:
            busy |= machine.busy_ports()
        return replace(view, busy_ports=busy) if busy else view

    def _others(self, tx: Reader, own: Sequence[MachineView]) -> tuple[MachineView, ...]:
        """The other servers of a shared store that have been heard of lately, and the nodes that
        only they reach."""
        since = self._parts.store.now() - self._parts.settings.server_lease_s
        limits = self._parts.machine.limits
        known = {machine.node_id for machine in own}
        heard = [n for n in tx.nodes() if n.node_id not in known and n.heartbeat_at > since]
        servers = tuple(
            MachineView(
                node_id=node.node_id,
                machine_id=node.machine_id,
                capacity=node.capacity,
                executors=node.executors,
                drained=node.drained,
                closed_gates=update_gates(Gates(), node.load, limits).closed,
            )
            for node in heard
            if node.is_server
        )
        offered = tuple(node for node in heard if not node.is_server)
        return servers + executor_nodes.views(offered, {})

    def _apply(
        self,
        tx: Transaction,
        chosen: Placement,
        known: Job | None,
        now: float,
    ) -> Placed:
        job = known or tx.job(chosen.job_id)
        assert job is not None  # the placement was decided in this very transaction
        start = starts.of_next(tx, job)
        attempt = self._new_attempt(job, chosen, start, now)
        tx.insert_attempt(attempt)
        tx.apply(
            states.move(
                job.id,
                job.status,
                JobStatus.SCHEDULED,
                Event(events.JOB_SCHEDULED, now, _ACTOR, attempt.attempt_id),
                reason=start_reasons.starting(job),
                stage=Stage.STARTING,
                ready=False,
                not_before=None,
                attempt_number=attempt.number,
                scheduled_at=now,
                started_at=None,
            )
        )
        return Placed(job, attempt, start)

    def _new_attempt(self, job: Job, chosen: Placement, start: Start, now: float) -> Attempt:
        number = job.attempt_number + 1
        return Attempt(
            attempt_id=job.attempt_id(number),
            job_id=job.id,
            number=number,
            status=AttemptStatus.STARTING,
            node_id=self._parts.node_id,
            machine_id=chosen.machine_id,
            boot_id=self._parts.machine.boot_id,
            executor=chosen.executor,
            request=job.spec.request,
            tag=fingerprint(self._parts.random(8)),
            created_at=now,
            stage=Stage.STARTING,
            gpus=chosen.gpus,
            ports=chosen.ports,
            params={**job.spec.params, **start.adjustments.params},
            slices=chosen.slices,
        )


def _shape(
    tx: Reader, shape: WaitingShape, free: int, others: set[int], avoid_s: float
) -> ShapeView:
    # With no free slot the first job still is needed, to see who starves and what to say.
    heads = tx.ready_jobs(shape.id, max(free, 1))
    if others:
        heads = [head for head in heads if head.job_id not in others]
    return ShapeView(
        id=shape.id,
        priority=shape.priority,
        request=shape.request,
        jobs=tuple(_waiting(tx, head, shape, avoid_s) for head in heads),
        executor=shape.executor,
        array_id=shape.array_id,
        array_limit=shape.array_limit,
        more=len(heads) >= max(free, 1),
        gang=shape.gang,
    )


def _want_ports(shapes: Sequence[WaitingShape]) -> bool:
    return any(shape.request.port_count or shape.gang is not None for shape in shapes)


def _waiting(tx: Reader, head: WaitingJob, shape: WaitingShape, avoid_s: float) -> WaitingJobView:
    avoid, until = avoided.NOTHING
    if shape.request.gpu_milli and head.attempt_number:
        avoid, until = avoided.of(tx, head, avoid_s)
    return WaitingJobView(head.job_id, head.queued_at, head.ref, avoid, until)


def _attempt(active: ActiveAttempt) -> AttemptView:
    return AttemptView(
        machine_id=active.machine_id,
        node_id=active.node_id,
        request=active.request,
        gpus=active.gpus,
        ports=active.ports,
        array_id=active.array_id,
        started_at=active.started_at,
        expected_s=active.expected_s,
        slices=tuple(
            AttemptView(
                part.machine_id,
                active.node_id,
                active.request,
                part.gpus,
                part.ports,
                started_at=active.started_at,
                expected_s=active.expected_s,
            )
            for part in active.slices
        ),
    )


def fingerprint(random: bytes) -> int:
    """A fingerprint no other process has by chance; never zero and below the limit's infinity."""
    return (int.from_bytes(random, "big") >> (64 - _TAG_BITS)) | (1 << (_TAG_BITS - 1))
