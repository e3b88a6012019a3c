"""What the ray-bridge tells of the cluster, in the words of the executor port."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.executors.base import ExecutorNode, NodeGpu, Usage
from runyard.supervisor import identity


def nodes(rows: Sequence[Mapping[str, Any]], cluster: str) -> tuple[ExecutorNode, ...]:
    return tuple(
        ExecutorNode(
            name=str(row["name"]),
            address=str(row["address"]),
            cpu_cores=float(row["cpu_cores"]),
            memory_mb=int(row["memory_mb"]),
            gpus=tuple(
                NodeGpu(int(gpu["index"]), gpu["uuid"], gpu["name"], int(gpu["memory_mb"]))
                for gpu in row["gpus"]
            ),
            labels={str(name): str(value) for name, value in row["labels"].items()},
            alive=bool(row["alive"]),
            cluster=cluster,
        )
        for row in rows
    )


@dataclass(frozen=True, slots=True)
class Measured:
    at: float  # by the clock of the node
    usage: Usage


def usages(
    told: Mapping[str, Mapping[str, Any]], before: Mapping[str, Measured]
) -> dict[str, Measured]:
    """By attempt. What was not measured anew is not told as new."""
    here = identity.boot_id()
    return {
        attempt_id: known
        if (known := before.get(attempt_id)) is not None and known.at == row["at"]
        else Measured(float(row["at"]), _usage(row, here))
        for attempt_id, row in told.items()
    }


def _usage(told: Mapping[str, Any], boot_id: str) -> Usage:
    """Numbers of processes mean nothing on another machine: there they are only counted."""
    return Usage(
        at=time.monotonic(),
        cpu_s=float(told["cpu_s"]),
        rss_mb=float(told["rss_mb"]),
        pids=tuple(int(pid) if boot == boot_id else -int(pid) for boot, pid in told["pids"]),
    )
