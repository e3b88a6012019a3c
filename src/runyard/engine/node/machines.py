"""Nodes and GPUs: what people see of them, and draining and fencing them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runyard.domain import errors, events
from runyard.domain.events import Event
from runyard.domain.resources import Gpu
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.node.executor_nodes import ExecutorNodes
from runyard.engine.parts import Parts
from runyard.stores.base import ActiveAttempt, Reader, Transaction
from runyard.stores.base_machines import Node


@dataclass(frozen=True, slots=True)
class GpuView:
    node_id: str
    index: int
    uuid: str
    name: str
    memory_mb: int
    used_mb: int | None
    group: str
    fenced: bool
    fence_reason: str | None
    locked_by_other_server: bool
    holders: tuple[dict[str, Any], ...]  # processes that are not ours
    jobs: tuple[dict[str, Any], ...]  # {job_id, attempt_id, share}


class Machines:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.executor_nodes = ExecutorNodes(parts)
        self._epoch = 0

    def load_decisions(self) -> None:
        """What people decided before this start: fenced GPUs, a drained node."""
        machine = self._parts.machine
        with self._parts.store.read() as reader:
            machine.fenced = reader.fenced_gpus(machine.machine_id)
            own = [n for n in reader.nodes() if n.node_id == self._parts.node_id]
        machine.drained = any(node.drained for node in own)

    def register(self, epoch_grows: bool) -> bool:
        """Tell the store that this node is here and how it is. False when others have taken it
        for dead meanwhile: what it ran on a shared cluster may be theirs."""
        machine, settings = self._parts.machine, self._parts.settings

        def work(tx: Transaction) -> int:
            known = next((n for n in tx.nodes() if n.node_id == self._parts.node_id), None)
            machine.drained = known.drained if known else False
            machine.fenced = tx.fenced_gpus(machine.machine_id)
            epoch = (known.epoch if known else 0) + int(epoch_grows)
            tx.put_node(
                Node(
                    node_id=self._parts.node_id,
                    name=settings.node_name,
                    machine_id=machine.machine_id,
                    boot_id=machine.boot_id,
                    url=settings.advertise_url or settings.url,
                    epoch=epoch,
                    capacity=machine.capacity,
                    load=machine.load,
                    executors=machine.executors,
                    drained=machine.drained,
                    heartbeat_at=self._parts.store.now(),
                )
            )
            if machine.offered:
                self.executor_nodes.load(tx)
                self.executor_nodes.put(tx)
            return epoch

        begun = time.monotonic()
        epoch = self._parts.store.write(work, durable=epoch_grows)
        machine.heard_at = begun
        before, self._epoch = self._epoch, epoch
        return epoch_grows or epoch == before

    def nodes(self) -> list[Node]:
        with self._parts.store.read() as reader:
            return reader.nodes()

    def find(self, node: str) -> Node:
        """By id, or by a name that only one has."""
        with self._parts.store.read() as reader:
            return _find_node(reader, node)

    def set_drained(self, node: str, drained: bool, actor: Actor) -> Node:
        actor.must_be_admin()
        code = events.NODE_DRAINED if drained else events.NODE_UNDRAINED
        now = self._parts.clock()

        def work(tx: Transaction) -> Node:
            found = _find_node(tx, node)
            tx.set_drained(found.node_id, drained)
            tx.append_event(None, Event(code, now, actor.name, params={"node": found.name}))
            return _find_node(tx, found.node_id)

        changed = self._parts.store.write(work)
        if changed.node_id == self._parts.node_id:
            self._parts.machine.drained = drained
        self._reload_offered()
        self._parts.store.wake_others("queue")
        server_log.of().info("node {} {} by {}", changed.name, code, actor.name)
        return changed

    def gpus(self) -> list[GpuView]:
        machine = self._parts.machine
        machine.refresh_gpus()
        with self._parts.store.read() as reader:
            active = reader.active_attempts()
            refs = {job.id: job.ref for job in reader.jobs_by_id([a.job_id for a in active])}
            nodes = reader.nodes()
            fenced = {n.machine_id: reader.fenced_gpus(n.machine_id) for n in nodes}
        views = []
        for node in nodes:
            own = node.node_id == self._parts.node_id
            for gpu in machine.capacity.gpus if own else node.capacity.gpus:
                used: Callable[[str], int] | None = machine.used_mb if own else None
                reason = fenced[node.machine_id].get(gpu.uuid)
                views.append(_view(node, gpu, active, refs, reason, used))
        return views

    def fence(self, gpu: str, reason: str, actor: Actor) -> GpuView:
        def change(tx: Transaction, machine_id: str, uuid: str, now: float) -> Event:
            tx.fence_gpu(machine_id, uuid, reason, now)
            return Event(events.GPU_FENCED, now, actor.name, params={"gpu": uuid})

        return self._change_gpu(gpu, actor, change)

    def unfence(self, gpu: str, actor: Actor) -> GpuView:
        def change(tx: Transaction, machine_id: str, uuid: str, now: float) -> Event:
            tx.unfence_gpu(machine_id, uuid)
            return Event(events.GPU_UNFENCED, now, actor.name, params={"gpu": uuid})

        return self._change_gpu(gpu, actor, change)

    def _change_gpu(
        self, gpu: str, actor: Actor, change: Callable[[Transaction, str, str, float], Event]
    ) -> GpuView:
        actor.must_be_admin()
        machine = self._parts.machine
        node_id, machine_id, uuid = self._find_gpu(gpu)
        now = self._parts.clock()

        def work(tx: Transaction) -> dict[str, str]:
            tx.append_event(None, change(tx, machine_id, uuid, now))
            return tx.fenced_gpus(machine.machine_id)

        machine.fenced = self._parts.store.write(work)
        machine.refresh()
        self._reload_offered()
        return next(v for v in self.gpus() if (v.node_id, v.uuid) == (node_id, uuid))

    def _find_gpu(self, gpu: str) -> tuple[str, str, str]:
        """(node, machine, uuid): by index here, by uuid, or as NODE:INDEX on an executor's."""
        machine = self._parts.machine
        for known in machine.capacity.gpus:
            if gpu in (known.uuid, str(known.index)):
                return self._parts.node_id, machine.machine_id, known.uuid
        for node in machine.offered:
            for known in node.capacity.gpus:
                names = (f"{node.node_id}:{known.index}", f"{node.name}:{known.index}")
                if gpu == known.uuid or gpu in names:
                    return node.node_id, node.machine_id, known.uuid
        raise errors.NotFound(f"There is no GPU {gpu} on this node.", gpu=gpu)

    def _reload_offered(self) -> None:
        if self._parts.machine.offered:
            with self._parts.store.read() as reader:
                self.executor_nodes.load(reader)


def _find_node(reader: Reader, node: str) -> Node:
    nodes = reader.nodes()
    found = [known for known in nodes if known.node_id == node]
    found = found or [known for known in nodes if known.name == node]
    if not found:
        raise errors.NotFound(f"There is no node {node}.", node=node)
    if len(found) > 1:
        ids = [known.node_id for known in found]
        raise errors.Conflict(
            f"Several nodes are called {node}. Name one by its id: {', '.join(ids)}.", nodes=ids
        )
    return found[0]


def _view(
    node: Node,
    gpu: Gpu,
    active: list[ActiveAttempt],
    refs: dict[int, str],
    fence_reason: str | None,
    used: Callable[[str], int] | None,
) -> GpuView:
    jobs = tuple(
        {
            "job_id": refs.get(attempt.job_id),
            "attempt_id": attempt.attempt_id,
            "share": grant.milli / 1000,
        }
        for attempt in active
        for part in attempt.slices or (attempt,)
        if part.machine_id == node.machine_id
        for grant in part.gpus
        if grant.uuid == gpu.uuid
    )
    return GpuView(
        node_id=node.node_id,
        index=gpu.index,
        uuid=gpu.uuid,
        name=gpu.name,
        memory_mb=gpu.memory_mb,
        used_mb=used(gpu.uuid) if used else None,
        group=gpu.group,
        fenced=fence_reason is not None,
        fence_reason=fence_reason,
        locked_by_other_server=gpu.locked_by_other_server,
        holders=tuple(
            {"pid": holder.pid, "user": holder.user, "name": holder.name} for holder in gpu.holders
        ),
        jobs=jobs,
    )
