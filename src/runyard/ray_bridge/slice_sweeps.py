"""Ending by force what lives of an attempt on its nodes, also below supervisors that hang.

Asked through actors that are made for it: those of the attempt may be what hangs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.deadlines import Late
from runyard.ray_bridge.slices import Slice
from runyard.supervisor.stop_request import Request

INTRODUCE_S = 20.0
SWEEP_S = 15.0
_AT_ONCE = 8

Found = dict[str, Any]  # killed, living


class Unswept(Exception):
    """None of its nodes could be asked."""


def sweep(cluster: Cluster, slices: Sequence[Slice], request: Request) -> Found:
    """How many processes were killed, and those that live on. Nodes that cannot be asked have
    nothing to tell; why is in the bridge's log."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = list(pool.map(lambda one: _sweep_one(cluster, one, request), slices))
    found = [one for one in asked if one is not None]
    if asked and not found:
        raise Unswept("none of its nodes could be asked")
    return {
        "killed": sum(one["killed"] for one in found),
        "living": [process for one in found for process in one["living"]],
    }


def _sweep_one(cluster: Cluster, one: Slice, request: Request) -> Found | None:
    import ray

    sweeper = None
    try:
        node = str(one.facts["node_id"])
        sweeper = cluster.make_collector(node, one.attempt_id, one.index, INTRODUCE_S)
        swept = sweeper.sweep.remote(cluster.code, cluster.archive, request)
        found: Found = cluster.get(swept, SWEEP_S)
        return found
    except (KeyError, Late, ray.exceptions.RayError) as error:
        print(f"{one.name} could not be swept: {error}", file=sys.stderr, flush=True)
        return None
    finally:
        if sweeper is not None:
            with contextlib.suppress(Late, ValueError, ray.exceptions.RayError):
                cluster.kill(sweeper)
