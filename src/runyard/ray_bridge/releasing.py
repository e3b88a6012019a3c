"""Giving back what an attempt has in the cluster: its actors, then its placement group. Both are
needed, and Ray may give up on either, so it is looked whether they are gone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.deadlines import Late
from runyard.ray_bridge.names import group_name

CONFIRM_S = 5.0
_LOOK_S = 0.02
_AGAIN_S = 5.0


def release(
    cluster: Cluster,
    attempt_id: str,
    actor_names: Sequence[str],
    stuck: Callable[[str], None],
) -> None:
    """Returns when nothing is left; `stuck` hears now and then of what does not go."""
    while True:
        try:
            left = release_once(cluster, attempt_id, actor_names)
        except Late as error:
            left = str(error)
        if not left:
            return
        stuck(left)
        time.sleep(_AGAIN_S)


def release_once(cluster: Cluster, attempt_id: str, actor_names: Sequence[str]) -> str:
    """The names of what is still there."""
    name = group_name(attempt_id)
    for actor_name in actor_names:
        kill(cluster, actor_name)
    group = cluster.group(name)
    if group is not None:
        cluster.remove_group(group)
    deadline = time.monotonic() + CONFIRM_S
    left = "?"
    while left and time.monotonic() < deadline:
        actors = cluster.actor_names() & set(actor_names)
        groups = set() if cluster.group(name) is None else {name}
        left = ", ".join(sorted(actors | groups))
        if left:
            time.sleep(_LOOK_S)
    return left


def kill(cluster: Cluster, actor_name: str) -> None:
    actor: Any = cluster.actor(actor_name)
    if actor is not None:
        # Not __ray_terminate__: that may leave the process alive.
        with contextlib.suppress(ValueError):
            cluster.kill(actor)
