"""Whether the ports of an attempt can be used on its nodes, asked right before its ranks start.

What listens there may be a rank of an earlier attempt that nobody has seen the end of: ranks of
this one would talk to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.slices import Slice
from runyard.ray_bridge.starting import NotStarted

ASK_S = 30.0
PORT_TAKEN = "port_taken"


def check(cluster: Cluster, slices: Sequence[Slice]) -> None:
    """Raises NotStarted with all that are taken. A node that does not answer now tells nothing of
    its ports; of itself it will tell soon."""
    import ray

    asked = [
        (one, one.actor.taken_ports.remote(list(one.plan["ports"])))
        for one in slices
        if one.plan.get("ports")
    ]
    refused: list[dict[str, Any]] = []
    for one, reference in asked:
        try:
            taken = cluster.get(reference, ASK_S)
        except ray.exceptions.RayError:
            continue
        node = str(one.plan.get("node") or one.facts.get("address", ""))
        refused += [{"slice": one.index, "node": node, "port": port} for port in taken]
    if refused:
        first = refused[0]
        message = f"port {first['port']} is in use on {first['node']}"
        known = {"port": first["port"], "node": first["node"], "refused": refused}
        raise NotStarted("ports", message, cause=PORT_TAKEN, **known)
