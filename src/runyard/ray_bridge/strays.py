"""What is left in the cluster of attempts that have ended. Only whole names of attempts that the
server names are touched; placement groups are looked for beside actors, each may be without the
other."""

from __future__ import annotations

from runyard.ray_bridge import releasing
from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.names import attempt_of_actor, attempt_of_group


def present(cluster: Cluster) -> set[str]:
    """Attempts that have an actor or a placement group under their name."""
    return set(_actors(cluster)) | _groups(cluster)


def end(cluster: Cluster, attempt_ids: set[str]) -> set[str]:
    """Those of them that had something, which is gone now."""
    actors = _actors(cluster)
    found = attempt_ids & (set(actors) | _groups(cluster))
    for attempt_id in found:
        releasing.release_once(cluster, attempt_id, actors.get(attempt_id, []))
    return found


def _actors(cluster: Cluster) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in cluster.actor_names():
        attempt_id = attempt_of_actor(name)
        if attempt_id is not None:
            found.setdefault(attempt_id, []).append(name)
    return found


def _groups(cluster: Cluster) -> set[str]:
    return {found for name in cluster.groups() if (found := attempt_of_group(name)) is not None}
