"""A cluster without processes that several servers reach: attempts live and end as a test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from runyard.executors.base import ExecutorNode, News, NodeGpu
from scripted_executor import ScriptedExecutor


def worker(name: str, gpus: int = 0, **more: Any) -> ExecutorNode:
    more = {"cpu_cores": 8, "memory_mb": 32 * 1024, "cluster": "east", **more}
    offered = tuple(NodeGpu(n, f"{name}-gpu-{n}", "NVIDIA H100", 81_920) for n in range(gpus))
    return ExecutorNode(name=name, address=f"{name}.example", gpus=offered, **more)


class ScriptedCluster(ScriptedExecutor):
    """Keeps the promises of executors/base.py for all servers together: what one refuses no other
    can start."""

    name = "ray"

    def __init__(self, folder: Path, nodes: list[ExecutorNode]) -> None:
        super().__init__(folder)
        self.offered = nodes
        self.reachable = True
        self.hearers: list[Callable[[News], None]] = []

    def nodes(self) -> list[ExecutorNode]:  # type: ignore[override]
        return list(self.offered)

    def available(self) -> tuple[bool, str]:
        return (True, "") if self.reachable else (False, "cluster_unreachable")

    def open(self, hear: Callable[[News], None]) -> None:
        super().open(hear)
        self.hearers.append(hear)

    def close(self, *, keep: bool) -> None:
        if self._hear in self.hearers:
            self.hearers.remove(self._hear)
        super().close(keep=keep)

    def tell(self, news: News) -> None:
        for hear in list(self.hearers):
            hear(news)


class ClusterView:
    """The executor of one server, on a cluster that others reach too."""

    name = "ray"

    def __init__(self, cluster: ScriptedCluster) -> None:
        self._cluster = cluster
        self._hear: Callable[[News], None] | None = None

    def open(self, hear: Callable[[News], None]) -> None:
        self._hear = hear
        self._cluster.hearers.append(hear)

    def close(self, *, keep: bool) -> None:  # noqa: ARG002
        if self._hear in self._cluster.hearers:
            self._cluster.hearers.remove(self._hear)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)
