"""That the memory of an attempt is back on the GPUs of its nodes, asked while they are still its.

As on one machine: what is not back keeps its GPU, which is told until it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.slices import Slice, State

_FIRST_WAIT_S = 0.5
_WAIT_S = 2.0
_ANSWER_S = 60.0  # beyond the wait: it may be reading at its end
_UNREAD_TIMES = 3

Gpu = dict[str, Any]
Tell = Callable[[list[Gpu], float], None]  # what is held, and for how long


def gather(cluster: Cluster, slices: Sequence[Slice], tell: Tell) -> list[Gpu]:
    """What each GPU held before the end and holds now; of those that nobody could read only which
    they are. None where no node can read any."""
    began = time.monotonic()
    found: dict[int, list[Gpu]] = {}
    unread: dict[int, int] = {}
    waiting = [one for one in slices if _can_tell(one)]
    seconds = _FIRST_WAIT_S
    while waiting:
        told = _ask(cluster, waiting, seconds)
        held = [_at(one, gpu) for one in waiting for gpu in told[one.index].get("held", ())]
        found |= {one.index: told[one.index].get("gpus", []) for one in waiting}
        for one in waiting:
            unread[one.index] = unread.get(one.index, 0) + bool(told[one.index].get("unread"))
        waiting = [
            one
            for one in waiting
            if told[one.index].get("held")
            or (told[one.index].get("unread") and unread[one.index] < _UNREAD_TIMES)
        ]
        if held:
            tell(held, time.monotonic() - began)
        seconds = _WAIT_S
    if not any(found.values()):
        return []
    return [_at(one, gpu) for one in slices for gpu in found.get(one.index) or _named(one)]


def _can_tell(one: Slice) -> bool:
    return one.state is State.ENDED and bool(one.facts.get("reads_gpus"))


def _ask(cluster: Cluster, slices: Sequence[Slice], seconds: float) -> dict[int, dict[str, Any]]:
    """By index of the slice; empty of one whose actor died."""
    import ray

    asked = [(one, one.teller.gpus_given_back.remote(seconds)) for one in slices]
    found: dict[int, dict[str, Any]] = {}
    for one, reference in asked:
        try:
            found[one.index] = cluster.get(reference, seconds + _ANSWER_S)
        except ray.exceptions.RayError as error:
            print(f"GPUs of {one.name} cannot be read: {error}", file=sys.stderr, flush=True)
            found[one.index] = {}
    return found


def _at(one: Slice, gpu: Gpu) -> Gpu:
    return {**gpu, "node": str(one.plan.get("node") or one.facts.get("address", ""))}


def _named(one: Slice) -> list[Gpu]:
    ids = [str(gpu_id) for gpu_id in one.facts.get("gpu_ids", ())]
    return [{"index": int(gpu_id)} for gpu_id in ids if gpu_id.isdigit()]
