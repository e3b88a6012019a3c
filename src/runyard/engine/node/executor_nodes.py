"""Machines that executors offer: looked at while the server runs, and kept in the store.

An executor that runs on other machines tells them by `nodes()`. Each becomes a node of its own,
with GPUs and ports that are granted like those of a server's machine. Several servers that reach
one cluster tell the same nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from runyard.domain.resources import Capacity, Gpu
from runyard.domain.scheduling.view import MachineView
from runyard.engine import server_log
from runyard.engine.parts import Parts
from runyard.executors.base import ExecutorNode
from runyard.stores.base import Reader, Transaction
from runyard.stores.base_machines import Node

# A dead node nobody has anything on is forgotten after this.
FORGET_DEAD_S = 24 * 3600.0


class ExecutorNodes:
    """What is known of them is `parts.machine.offered`; this keeps it up to date."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._drained: set[str] = set()
        self._fenced: dict[str, dict[str, str]] = {}  # by machine
        self._deaf: dict[str, str] = {}  # executors that could not be asked: why

    def look(self) -> bool:
        """Ask the executors again; True when something changed that placement looks at."""
        machine = self._parts.machine
        before = {node.node_id: node for node in machine.offered}
        seen: dict[str, Node] = {}
        for name, executor in self._parts.executors.items():
            told = executor.nodes()
            if told is None:
                continue
            available, why = executor.available()
            self._note_sight(name, available, why)
            nodes = [self._node(name, one, available) for one in told] if available else []
            for node in nodes or _as_last_told(name, before, available):
                seen[node.node_id] = node
        for node in seen.values():
            if not node.alive and before.get(node.node_id, node).alive:
                server_log.of().error("node {} of the {} executor is gone", node.name, node.kind)
        machine.offered = tuple(seen.values())
        return before != seen

    def load(self, reader: Reader) -> None:
        """What people decided: drained nodes and fenced GPUs."""
        self._drained = {node.node_id for node in reader.nodes() if node.drained}
        machines = {node.machine_id for node in self._parts.machine.offered}
        self._fenced = {one: reader.fenced_gpus(one) for one in machines}
        self._apply_decisions()

    def _apply_decisions(self) -> None:
        machine = self._parts.machine
        machine.offered = tuple(
            replace(
                node,
                drained=node.node_id in self._drained,
                capacity=self._with_fences(node.machine_id, node.capacity),
            )
            for node in machine.offered
        )

    def put(self, tx: Transaction) -> None:
        """Tell the store how they are; those that are gone are marked, and forgotten later."""
        offered = self._parts.machine.offered
        if not offered:
            return
        now = self._parts.store.now()
        known = {node.node_id: node for node in tx.nodes() if not node.is_server}
        listed = {node.node_id for node in offered}
        for node in offered:
            kept = known.get(node.node_id)
            heard = now if node.alive and node.executors else _heard(kept, now)
            tx.put_node(replace(node, heartbeat_at=heard))
        reached = {(node.kind, node.cluster) for node in offered if node.executors}
        for node in known.values():
            if node.node_id in listed or (node.kind, node.cluster) not in reached:
                continue
            if node.alive:
                tx.put_node(replace(node, alive=False, executors=()))
            elif now - node.heartbeat_at > FORGET_DEAD_S:
                tx.drop_node(node.node_id)

    def _node(self, kind: str, told: ExecutorNode, available: bool) -> Node:
        node_id = self._id_of(kind, told)
        machine = self._parts.machine
        own = {gpu.uuid for gpu in machine.capacity.gpus}
        # An executor may offer the very machine this server runs on: one machine, one account.
        here = any(gpu.uuid in own for gpu in told.gpus)
        machine_id = machine.machine_id if here else node_id
        return Node(
            node_id=node_id,
            name=told.name,
            machine_id=machine_id,
            boot_id="",
            url="",
            epoch=0,
            capacity=self._with_fences(machine_id, self._capacity(told)),
            load=None,
            executors=(kind,) if available and told.alive else (),
            drained=node_id in self._drained,
            heartbeat_at=0.0,
            kind=kind,
            address=told.address,
            labels=dict(told.labels),
            alive=told.alive,
            cluster=told.cluster,
        )

    def _id_of(self, kind: str, told: ExecutorNode) -> str:
        """The same for every server that reaches the cluster, and over restarts."""
        cluster = told.cluster or self._parts.node_id
        words = "\0".join((kind, cluster, told.name))
        return f"{kind}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"

    def _capacity(self, told: ExecutorNode) -> Capacity:
        first, last = self._parts.settings.port_range
        return Capacity(
            cpu_milli=round(told.cpu_cores * 1000),
            memory_mb=told.memory_mb,
            gpus=tuple(Gpu(gpu.index, gpu.uuid, gpu.name, gpu.memory_mb) for gpu in told.gpus),
            port_first=first,
            port_count=last - first + 1,
        )

    def _with_fences(self, machine_id: str, capacity: Capacity) -> Capacity:
        fenced = self._fenced.get(machine_id, {})
        gpus = tuple(replace(gpu, fenced=gpu.uuid in fenced) for gpu in capacity.gpus)
        return capacity if gpus == capacity.gpus else replace(capacity, gpus=gpus)

    def _note_sight(self, name: str, available: bool, why: str) -> None:
        if available:
            if self._deaf.pop(name, None) is not None:
                server_log.of().info("the {} executor can start jobs", name)
        elif self._deaf.get(name) != why:
            self._deaf[name] = why
            server_log.of().warning("the {} executor cannot start anything now: {}", name, why)


def views(offered: tuple[Node, ...], drained: Mapping[str, bool]) -> tuple[MachineView, ...]:
    """Those that something can be started on now. `drained` is what the store says, where others
    may have changed it."""
    return tuple(
        MachineView(
            node_id=node.node_id,
            machine_id=node.machine_id,
            capacity=node.capacity,
            executors=node.executors,
            drained=drained.get(node.node_id, node.drained),
            node=node.name,
            address=node.address,
            cluster=node.cluster,
        )
        for node in offered
        if node.alive and node.executors
    )


def _as_last_told(kind: str, before: Mapping[str, Node], available: bool) -> list[Node]:
    """While an executor cannot be asked, what it told before stays, and takes nothing new; of one
    that tells of no node any more they are dead."""
    return [
        replace(node, executors=(), alive=node.alive and not available)
        for node in before.values()
        if node.kind == kind
    ]


def _heard(kept: Node | None, now: float) -> float:
    return now if kept is None else kept.heartbeat_at
