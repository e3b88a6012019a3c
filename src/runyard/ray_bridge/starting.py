"""The start of an attempt in the cluster: all slices stand ready, or nothing is left of them."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.deadlines import Late
from runyard.ray_bridge.names import group_name
from runyard.ray_bridge.node_process import is_fresh
from runyard.ray_bridge.slices import Slice

GROUP_S = 10.0
HELLO_S = 60.0
LAUNCH_S = 30.0
ROOM_S = 1.0
_LOOK_S = 0.5
_ROOM_PAUSE_S = 0.01


class NotStarted(Exception):
    """Nothing of the user's ran. `step` says how far it came, `cause` why where that is known."""

    def __init__(self, step: str, message: str, *, cause: str = "", **detail: Any) -> None:
        super().__init__(message)
        self.cause = cause
        self.detail = {"step": step, "message": message[:500], **detail}


def place(
    cluster: Cluster,
    spec: Mapping[str, Any],
    slices: Sequence[Slice],
    node_ids: Mapping[str, str],
    told_to_stop: Callable[[], bool],
) -> None:
    """A placement group and an actor for each slice; each has said who and where it is."""
    attempt_id = str(spec["attempt_id"])
    nodes = [_node_id(one, node_ids) for one in slices]
    needs = {"num_cpus": float(spec["cpus_each"]), "num_gpus": float(spec["gpus_each"])}
    bundle = {"CPU": needs["num_cpus"], "GPU": needs["num_gpus"]}
    bundle = {name: amount for name, amount in bundle.items() if amount > 0} or {"CPU": 0.001}
    strategy = "PACK" if all(nodes) or len(slices) == 1 else "STRICT_SPREAD"
    name = group_name(attempt_id)
    _await_room(cluster, nodes, bundle, told_to_stop)
    group = cluster.make_group(name, [bundle] * len(slices), nodes, strategy)
    _await_group(cluster, group, name, told_to_stop)
    began = time.monotonic()
    for one in slices:
        one.actor = cluster.make_actor(one.name, group, one.index, **needs)
    references = [cluster.introduce(one.actor, attempt_id, one.index) for one in slices]
    for one, reference in zip(slices, references, strict=True):
        one.facts = _hello(cluster, one, reference, told_to_stop)
        one.facts["fresh"] = is_fresh(one.facts["age_s"], time.monotonic() - began)
        cluster.warm.used(one.facts["node_id"], fresh=one.facts["fresh"])


def launch(cluster: Cluster, spec: Mapping[str, Any], slices: Sequence[Slice]) -> None:
    """Say go to all of them; the same again changes nothing. A node that cannot run its slice has
    failed with it, and the rule of gangs ends the others; of a silent one the reading tells."""
    import ray

    references = [
        one.actor.start.remote(cluster.code, _archive(cluster, one), _order(spec, one))
        for one in slices
    ]
    for one, reference in zip(slices, references, strict=True):
        try:
            cluster.get(reference, LAUNCH_S)
        except ray.exceptions.RayTaskError as error:
            one.refuse(str(error.cause))
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            continue


def _node_id(one: Slice, node_ids: Mapping[str, str]) -> str:
    name = str(one.plan.get("node", ""))
    if name and name not in node_ids:
        raise NotStarted("node", f"there is no node {name} in the cluster now", node=name)
    return node_ids[name] if name else ""


def _await_room(
    cluster: Cluster,
    nodes: Sequence[str],
    bundle: Mapping[str, float],
    told_to_stop: Callable[[], bool],
) -> None:
    """What another attempt has just given back is known to the head a tenth of a second later; a
    group that is asked for before that waits for its next turn, which is much longer."""
    deadline = time.monotonic() + ROOM_S
    with contextlib.suppress(Late):
        while not told_to_stop() and time.monotonic() < deadline:
            if _has_room(cluster.free(), nodes, bundle):
                return
            time.sleep(_ROOM_PAUSE_S)


def _has_room(
    free: Mapping[str, Mapping[str, float]], nodes: Sequence[str], bundle: Mapping[str, float]
) -> bool:
    fitting = {
        node_id: min(row.get(name, 0) // amount for name, amount in bundle.items())
        for node_id, row in free.items()
    }
    named = Counter(node for node in nodes if node)
    if any(fitting.get(node, 0) < times for node, times in named.items()):
        return False
    return sum(1 for slots in fitting.values() if slots >= 1) >= (1 if named else len(nodes))


def _await_group(
    cluster: Cluster, group: Any, name: str, told_to_stop: Callable[[], bool]
) -> None:
    deadline = time.monotonic() + GROUP_S
    while not cluster.deadlines.call(lambda: group.wait(_LOOK_S)):
        if told_to_stop():
            raise NotStarted("placement_group", "it was asked to stop")
        if time.monotonic() >= deadline:
            row = cluster.groups().get(name, {})
            state = row.get("stats", {}).get("scheduling_state", "unknown")
            raise NotStarted("placement_group", "the cluster has no room for it", state=state)


def _hello(
    cluster: Cluster, one: Slice, reference: Any, told_to_stop: Callable[[], bool]
) -> dict[str, Any]:
    import ray

    deadline = time.monotonic() + HELLO_S
    while True:
        try:
            facts: dict[str, Any] = cluster.get(reference, _LOOK_S)
            break
        except ray.exceptions.GetTimeoutError:
            if told_to_stop():
                raise NotStarted("actor", "it was asked to stop") from None
            if time.monotonic() >= deadline:
                raise NotStarted("actor", f"{one.name} does not answer") from None
        except ray.exceptions.RayError as error:
            raise NotStarted("actor", f"{one.name}: {error}") from error
    if facts["owner"] != cluster.owner:
        raise NotStarted("actor", f"{one.name} belongs to somebody else")
    return facts


def _archive(cluster: Cluster, one: Slice) -> Any:
    """None where it is already on the node."""
    return None if one.facts.get("has_code") else cluster.archive


def _order(spec: Mapping[str, Any], one: Slice) -> dict[str, Any]:
    """What the node runs: with the GPUs that are really the slice's there."""
    told = dict(one.plan["spec"])
    granted = [str(gpu) for gpu in one.plan.get("gpu_ids", ())]
    ours = granted if spec.get("gpus_by") == "grant" else one.facts.get("gpu_ids", ())
    told["env"] = {**told["env"], "CUDA_VISIBLE_DEVICES": ",".join(ours)}
    return {"spec": told, "run_dir": spec["run_dir"], "whole": dict(spec)}
