"""The part of the store port that keeps machines: servers, nodes of executors, fenced GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from runyard.domain.resources import Capacity, Load

SERVER = "server"


@dataclass(frozen=True, slots=True)
class Node:
    """One server that can run attempts, or a machine that an executor offers to servers."""

    node_id: str
    name: str  # of an executor's: what the executor calls it
    machine_id: str
    boot_id: str
    url: str
    epoch: int  # grows with every start of that server, and when others take over its attempts
    capacity: Capacity
    load: Load | None
    executors: tuple[str, ...]
    drained: bool
    heartbeat_at: float
    kind: str = SERVER  # or the name of the executor that offers it
    address: str = ""  # where its ranks can be reached
    labels: Mapping[str, str] = field(default_factory=dict)
    alive: bool = True  # as its executor last told
    cluster: str = ""  # servers whose executors tell the same one reach the same attempts

    @property
    def is_server(self) -> bool:
        return self.kind == SERVER


class MachineReader(Protocol):
    def nodes(self) -> list[Node]:
        """Servers and nodes of executors, by id."""
        ...

    def fenced_gpus(self, machine_id: str) -> dict[str, str]:
        """GPU uuid -> reason, as a person gave it."""
        ...


class MachineTransaction(Protocol):
    def put_node(self, node: Node) -> None:
        """Insert or replace, except `drained`, which only `set_drained` changes."""
        ...

    def set_drained(self, node_id: str, drained: bool) -> bool: ...
    def drop_node(self, node_id: str) -> bool:
        """Forget a node of an executor; False if there is none, or something is granted there."""
        ...

    def depose_node(self, node_id: str, heard_at: float) -> bool:
        """Its epoch grows, so that it will learn that others took over from it. False when it has
        been heard of since `heard_at`."""
        ...

    def take_over(self, attempt_id: str, from_node: str, to_node: str) -> bool:
        """Another server owns a living attempt from now on; False when that one did not."""
        ...

    def fence_gpu(self, machine_id: str, uuid: str, reason: str, at: float) -> None: ...
    def unfence_gpu(self, machine_id: str, uuid: str) -> bool: ...
