"""Taking over an attempt that another server began: its actors know what it is."""

from __future__ import annotations

from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.names import actor_name
from runyard.supervisor import journal, protocol

_ASK_S = 10.0


def adopt(cluster: Cluster, data_dir: str, attempt_id: str) -> bool:
    """Make its folder here as its first server made it there. False where its actors do not tell:
    then nothing of the user's has run."""
    folder = protocol.attempt_folder(data_dir, attempt_id)
    first = cluster.actor(actor_name(attempt_id, 0))
    if first is None:
        return False
    spec: dict[str, Any] = cluster.get(first.whole.remote(), _ASK_S)
    if not spec:
        return False
    facts = []
    for part in spec["slices"]:
        actor = cluster.actor(actor_name(attempt_id, int(part["index"])))
        told = {} if actor is None else cluster.get(actor.hello.remote(), _ASK_S)
        if told and told["owner"] != cluster.owner:
            return False
        facts.append({"index": part["index"], **told})
    journal.create(folder, spec)
    journal.append(folder, "begun", {"adopted": True}, once=True)
    journal.append(folder, "placed", {"slices": facts}, once=True)
    return True
