"""The nodes of the cluster as machines: names that stay, and what each says of its GPUs."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from runyard.ray_bridge import node_facts
from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.node_process import is_fresh

_FACTS_S = 60.0


class Nodes:
    """Refreshed by the sweep; reading costs nothing."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._facts: dict[str, dict[str, Any]] = {}  # by node id
        self._asked: set[str] = set()
        self.ids: Mapping[str, str] = {}  # name -> node id, of those that live
        self.rows: list[dict[str, Any]] = []

    def refresh(self) -> None:
        rows = self._cluster.nodes()
        gone = self._cluster.gone
        alive = [row for row in rows if row["Alive"] and row["NodeID"] not in gone]
        times = Counter(row["NodeName"] for row in alive)
        names = {row["NodeID"]: _name(row, times) for row in alive}
        for row in alive:
            self._ask(row["NodeID"])
        self.ids = {name: node_id for node_id, name in names.items()}
        self.rows = [self._described(row, names[row["NodeID"]]) for row in alive]

    def leave_out_gone(self) -> None:
        """At once, without asking the cluster."""
        gone = self._cluster.gone
        self.ids = {name: node_id for name, node_id in self.ids.items() if node_id not in gone}
        self.rows = [row for row in self.rows if row["node_id"] not in gone]

    def all_known(self) -> bool:
        """Whether every node that lives has told of itself."""
        return set(self.ids.values()) <= set(self._facts)

    def _ask(self, node_id: str) -> None:
        """Once for each node, without waiting for the answer."""
        if node_id not in self._asked:
            self._asked.add(node_id)
            threading.Thread(target=self._learn, args=(node_id,), daemon=True).start()

    def _learn(self, node_id: str) -> None:
        began = time.monotonic()
        try:
            facts = node_facts.of_node(node_id, _FACTS_S)
            self._facts[node_id] = facts
            fresh = is_fresh(facts["age_s"], time.monotonic() - began)
            self._cluster.warm.used(node_id, fresh=fresh)
        except Exception:
            self._asked.discard(node_id)  # busy or gone: the next sweep asks again

    def _described(self, row: dict[str, Any], name: str) -> dict[str, Any]:
        resources = row["Resources"]
        facts = self._facts.get(row["NodeID"], {})
        count = int(resources.get("GPU", 0))
        ids = facts.get("gpu_ids") or [str(index) for index in range(count)]
        return {
            "name": name,
            "node_id": row["NodeID"],
            "address": row["NodeManagerAddress"],
            "hostname": row["NodeManagerHostname"],
            "cpu_cores": float(resources.get("CPU", 0)),
            "memory_mb": int(facts.get("memory_mb") or resources.get("memory", 0) / (1 << 20)),
            "gpus": [
                _gpu(name, place, gpu_id, row, facts) for place, gpu_id in enumerate(ids[:count])
            ],
            "labels": dict(row.get("Labels") or {}),
            "boot_id": facts.get("boot_id", ""),
            "alive": True,
        }


def _name(row: dict[str, Any], times: Counter[str]) -> str:
    """Stays the same when the node is started again, unless two have the same."""
    name = str(row["NodeName"])
    return name if times[name] == 1 else f"{name}@{row['NodeID'][:8]}"


def _gpu(
    name: str, place: int, gpu_id: str, row: dict[str, Any], facts: dict[str, Any]
) -> dict[str, Any]:
    known = facts.get("gpus", {}).get(gpu_id, {})
    kind = next(
        (
            resource.partition(":")[2]
            for resource in row["Resources"]
            if resource.startswith("accelerator_type:")
        ),
        "",
    )
    return {
        "index": int(gpu_id) if gpu_id.isdigit() else place,
        "id": gpu_id,
        "uuid": known.get("uuid") or f"{name}/{gpu_id}",
        "name": known.get("name") or kind,
        "memory_mb": known.get("memory_mb", 0),
    }
