"""What the bridge asks of the cluster, each call with its deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.ray_bridge import (
    node_process,
    slice_actor,
    slice_changes,
    slice_files,
    slice_gpus,
    slice_use,
    supervisor_archive,
    warm_workers,
)
from runyard.ray_bridge.deadlines import Deadlines
from runyard.ray_bridge.gone_nodes import GoneNodes
from runyard.ray_bridge.names import NAMESPACE
from runyard.ray_bridge.warm_workers import WarmWorkers
from runyard.supervisor import port_binding

_MADE_OF_ACTORS = {
    "lifetime": "detached",
    "max_restarts": 0,
    "max_task_retries": 0,
    "max_concurrency": 8,
    "namespace": NAMESPACE,
}
_OF_NODES = (
    slice_actor,
    slice_changes,
    slice_files,
    slice_gpus,
    slice_use,
    node_process,
    warm_workers,
    port_binding,
)
_CLAIMS = b"runyard"
BEGUN, REFUSED = "begun", "refused"
CREATE_S = 30.0
INTRODUCE_S = 60.0


class Cluster:
    """Made once the process has joined."""

    def __init__(self, owner: str, node_dir: str, *, shared: bool = False) -> None:
        import ray
        from ray import cloudpickle

        for module in _OF_NODES:
            cloudpickle.register_pickle_by_value(module)
        self.owner = owner
        self.node_dir = node_dir
        self._shared = shared  # several servers of one database have attempts in it
        self.deadlines = Deadlines()
        self._remote = ray.remote(slice_actor.SliceActor)
        self.code, archive = supervisor_archive.make()
        self.archive = ray.put(archive)
        self.warm = WarmWorkers(self.free)
        self.gone = GoneNodes()

    # placement groups

    def make_group(
        self,
        name: str,
        bundles: Sequence[Mapping[str, float]],
        nodes: Sequence[str],
        strategy: str,
    ) -> Any:
        """One that exists under this name comes from an earlier try of the same attempt."""
        from ray.util.placement_group import placement_group

        found = self.group(name)
        if found is not None:
            return found
        options: dict[str, Any] = {}
        if all(nodes):
            options["bundle_label_selector"] = [{"ray.io/node-id": node} for node in nodes]
        return self.deadlines.call(
            lambda: placement_group(
                [dict(bundle) for bundle in bundles],
                strategy=strategy,
                name=name,
                lifetime="detached",
                **options,
            )
        )

    def group(self, name: str) -> Any | None:
        from ray.util.placement_group import get_placement_group

        try:
            return self.deadlines.call(lambda: get_placement_group(name))
        except ValueError:
            return None

    def groups(self) -> dict[str, dict[str, Any]]:
        """Name -> row of those that are not removed."""
        from ray.util.placement_group import placement_group_table

        rows = self.deadlines.call(placement_group_table)
        return {row["name"]: row for row in rows.values() if row["state"] != "REMOVED"}

    def remove_group(self, group: Any) -> None:
        from ray.util.placement_group import remove_placement_group

        self.deadlines.call(lambda: remove_placement_group(group))

    # actors

    def make_actor(self, name: str, group: Any, bundle: int, **needs: float) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        strategy = PlacementGroupSchedulingStrategy(
            group, bundle, placement_group_capture_child_tasks=False
        )
        made = self._remote.options(
            name=name, scheduling_strategy=strategy, **needs, **_MADE_OF_ACTORS
        )
        return self.deadlines.call(made.remote, CREATE_S)

    def introduce(self, actor: Any, attempt_id: str, index: int) -> Any:
        """Tell it which slice it is; what it says of itself will come."""
        return actor.introduce.remote(attempt_id, index, self.owner, self.node_dir, self.code)

    def make_collector(
        self, node_id: str, attempt_id: str, index: int, seconds: float = INTRODUCE_S
    ) -> Any:
        """An actor that takes nothing and reads what a dead one left on its node. It dies with
        this process."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
        made = self._remote.options(num_cpus=0, scheduling_strategy=strategy, max_concurrency=8)
        actor = self.deadlines.call(made.remote, CREATE_S)
        self.get(actor.introduce.remote(attempt_id, index, self.owner, self.node_dir), seconds)
        return actor

    def actor(self, name: str) -> Any | None:
        import ray

        try:
            return self.deadlines.call(lambda: ray.get_actor(name, namespace=NAMESPACE))
        except ValueError:
            return None

    def actor_names(self) -> set[str]:
        import ray

        rows = self.deadlines.call(lambda: ray.util.list_named_actors(all_namespaces=True))
        return {row["name"] for row in rows if row["namespace"] == NAMESPACE}

    def kill(self, actor: Any) -> None:
        import ray

        self.deadlines.call(lambda: ray.kill(actor, no_restart=True))

    def get(self, reference: Any, seconds: float) -> Any:
        import ray

        return ray.get(reference, timeout=seconds)

    # claims: who of several servers may start an attempt

    def claim(self, attempt_id: str, word: str) -> str:
        """The first claim stands; the word that does."""
        if not self._shared:
            return word
        from ray.experimental import internal_kv

        key = attempt_id.encode()
        self.deadlines.call(
            lambda: internal_kv._internal_kv_put(key, word, overwrite=False, namespace=_CLAIMS)
        )
        return self.claimed(attempt_id)

    def claimed(self, attempt_id: str) -> str:
        if not self._shared:
            return BEGUN
        from ray.experimental import internal_kv

        key = attempt_id.encode()
        found = self.deadlines.call(lambda: internal_kv._internal_kv_get(key, namespace=_CLAIMS))
        return (found or b"").decode()

    def revoke(self, attempt_id: str) -> None:
        """Of a server that claimed it and is gone."""
        from ray.experimental import internal_kv

        key = attempt_id.encode()
        self.deadlines.call(
            lambda: internal_kv._internal_kv_put(key, REFUSED, overwrite=True, namespace=_CLAIMS)
        )

    # nodes

    def cluster_id(self) -> str:
        """The same for everybody who joins it, for as long as its head remembers."""
        import ray

        worker = ray._private.worker.global_worker
        return str(worker.gcs_client.cluster_id.hex())

    def nodes(self) -> list[dict[str, Any]]:
        import ray

        return self.deadlines.call(ray.nodes)

    def free(self) -> dict[str, dict[str, float]]:
        """Node id -> what the head knows to be free there now."""
        from ray._private import state

        return self.deadlines.call(state.available_resources_per_node)

    def node_alive(self, node_id: str) -> bool:
        return any(row["NodeID"] == node_id and row["Alive"] for row in self.nodes())
