"""Where the processes of an attempt are, asked of its actors on their nodes, all at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.slices import Slice

MARGIN_S = 10.0  # for the way there and back, beyond what a node may take


def gather(cluster: Cluster, slices: Sequence[Slice], seconds: float) -> list[dict[str, Any]]:
    """One that cannot tell does not keep the others from it; why is in the bridge's log."""
    import ray

    deadline = time.monotonic() + seconds + MARGIN_S
    asked: list[tuple[Slice, Any]] = []
    for one in slices:
        try:
            reference = one.actor.stacks.remote(cluster.code, cluster.archive, seconds)
        except AttributeError:  # an earlier version started it
            _note(one, "its actor cannot tell stacks")
        else:
            asked.append((one, reference))
    found: list[dict[str, Any]] = []
    for one, reference in asked:
        try:
            found += cluster.get(reference, max(0.1, deadline - time.monotonic()))
        except ray.exceptions.RayError as error:
            _note(one, str(error))
    return found


def _note(one: Slice, why: str) -> None:
    print(f"no stacks of {one.name}: {why}", file=sys.stderr, flush=True)
