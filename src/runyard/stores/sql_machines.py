"""Nodes and fenced GPUs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import bindparam, delete, exists, insert, select, update

from runyard.domain.resources import Capacity, Gpu, Holder, Load
from runyard.stores.base_machines import Node
from runyard.stores.column_types import Moment
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import fenced_gpus, grants, nodes

_OFFER = ("kind", "address", "labels", "alive", "cluster")  # what only executors' nodes have
_NODES = Statement(select(nodes).order_by(nodes.c.node_id))
_PUT_COLUMNS = [c.key for c in nodes.c if c.key not in ("node_id", "drained")]
_UPDATE_NODE = Statement(
    update(nodes).where(nodes.c.node_id == bindparam("the_node")), _PUT_COLUMNS
)
_INSERT_NODE = Statement(insert(nodes).inline(), [c.key for c in nodes.c])
_DRAIN = Statement(update(nodes).where(nodes.c.node_id == bindparam("the_node")), ("drained",))
_DROP_NODE = Statement(
    delete(nodes).where(
        nodes.c.node_id == bindparam("the_node"),
        nodes.c.offer.is_not(None),
        ~exists(select(grants.c.attempt_id).where(grants.c.machine_id == nodes.c.machine_id)),
    )
)
_DEPOSE = Statement(
    update(nodes)
    .where(
        nodes.c.node_id == bindparam("the_node"),
        nodes.c.heartbeat_at == bindparam("heard", type_=Moment),
    )
    .values(epoch=nodes.c.epoch + 1)
)
_FENCES = Statement(
    select(fenced_gpus.c.uuid, fenced_gpus.c.reason)
    .where(fenced_gpus.c.machine_id == bindparam("machine"))
    .order_by(fenced_gpus.c.uuid)
)
_FENCED = (
    fenced_gpus.c.machine_id == bindparam("machine"),
    fenced_gpus.c.uuid == bindparam("gpu"),
)
_UPDATE_FENCE = Statement(update(fenced_gpus).where(*_FENCED), ("reason", "fenced_at"))
_INSERT_FENCE = Statement(insert(fenced_gpus).inline(), [c.key for c in fenced_gpus.c])
_DELETE_FENCE = Statement(delete(fenced_gpus).where(*_FENCED))


class MachineReads(Session):
    def nodes(self) -> list[Node]:
        return [_node_from(row) for row in self._rows(_NODES)]

    def fenced_gpus(self, machine_id: str) -> dict[str, str]:
        return {row.uuid: row.reason for row in self._rows(_FENCES, machine=machine_id)}


class MachineWrites(MachineReads):
    def put_node(self, node: Node) -> None:
        columns = {
            "name": node.name,
            "machine_id": node.machine_id,
            "boot_id": node.boot_id,
            "url": node.url,
            "epoch": node.epoch,
            "capacity": asdict(node.capacity),
            "load": None if node.load is None else asdict(node.load),
            "executors": node.executors,
            "heartbeat_at": node.heartbeat_at,
            "offer": None if node.is_server else {name: getattr(node, name) for name in _OFFER},
        }
        if not self._run(_UPDATE_NODE, the_node=node.node_id, **columns):
            self._run(_INSERT_NODE, node_id=node.node_id, drained=node.drained, **columns)

    def set_drained(self, node_id: str, drained: bool) -> bool:
        return self._run(_DRAIN, the_node=node_id, drained=drained) > 0

    def drop_node(self, node_id: str) -> bool:
        return self._run(_DROP_NODE, the_node=node_id) > 0

    def depose_node(self, node_id: str, heard_at: float) -> bool:
        return self._run(_DEPOSE, the_node=node_id, heard=heard_at) > 0

    def fence_gpu(self, machine_id: str, uuid: str, reason: str, at: float) -> None:
        told = {"reason": reason, "fenced_at": at}
        if not self._run(_UPDATE_FENCE, machine=machine_id, gpu=uuid, **told):
            self._run(_INSERT_FENCE, machine_id=machine_id, uuid=uuid, **told)

    def unfence_gpu(self, machine_id: str, uuid: str) -> bool:
        return self._run(_DELETE_FENCE, machine=machine_id, gpu=uuid) > 0


def _node_from(row: Any) -> Node:
    return Node(
        node_id=row.node_id,
        name=row.name,
        machine_id=row.machine_id,
        boot_id=row.boot_id,
        url=row.url,
        epoch=row.epoch,
        capacity=_capacity_from(row.capacity),
        load=None if row.load is None else Load(**row.load),
        executors=tuple(row.executors),
        drained=row.drained,
        heartbeat_at=row.heartbeat_at,
        **(row.offer or {}),
    )


def _capacity_from(stored: dict[str, Any]) -> Capacity:
    gpus = tuple(
        Gpu(**{**gpu, "holders": tuple(Holder(**holder) for holder in gpu["holders"])})
        for gpu in stored["gpus"]
    )
    return Capacity(**{**stored, "gpus": gpus})
