"""The parts of an attempt that runs on nodes of an executor, and what each was given there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runyard.domain.resources import GpuGrant

Spreading = Literal["pack", "spread"]


@dataclass(frozen=True, slots=True)
class Gang:
    """What a distributed job wants of placement: so many nodes, on as few machines as hold them
    (pack) or each on a machine of its own (spread). What it requests is per node."""

    nodes: int = 1
    placement: Spreading = "pack"


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of an attempt on one node; `index` is its NODE_RANK."""

    index: int
    machine_id: str
    node: str  # the executor's name of the node
    address: str  # where ranks of other nodes reach it
    gpus: tuple[GpuGrant, ...] = ()
    ports: tuple[int, ...] = ()
    node_id: str = ""
    cluster: str = ""  # servers that reach it can go on with the attempt


def as_list(slices: Sequence[Slice]) -> list[dict[str, Any]]:
    return [
        {
            "index": one.index,
            "machine_id": one.machine_id,
            "node": one.node,
            "address": one.address,
            "gpus": [[gpu.uuid, gpu.index, gpu.milli] for gpu in one.gpus],
            "ports": list(one.ports),
            "node_id": one.node_id,
            "cluster": one.cluster,
        }
        for one in slices
    ]


def from_list(stored: Sequence[Mapping[str, Any]] | None) -> tuple[Slice, ...]:
    return tuple(
        Slice(
            index=one["index"],
            machine_id=one["machine_id"],
            node=one["node"],
            address=one["address"],
            gpus=tuple(GpuGrant(uuid, index, milli) for uuid, index, milli in one["gpus"]),
            ports=tuple(one["ports"]),
            node_id=one["node_id"],
            cluster=one["cluster"],
        )
        for one in stored or ()
    )
