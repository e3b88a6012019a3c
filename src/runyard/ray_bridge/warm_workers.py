"""A process of Ray's that waits on each node, so that the next slice there need not start one.

Ray gives an actor a process of our job that has done nothing yet, if its node has one; else it
starts one, which takes about half a second. One that has run a task is of no use to actors, so the
way to a fresh one is an actor that is taken back while its process is on its way: the process
comes up, finds its work gone and waits. It holds no resources, and ends with our job.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from runyard.ray_bridge.node_process import keep_lean

TAKEN_S = 0.12  # an actor that is up so soon got a process that was there
_LATER_S = 0.3  # what was just started goes first, and what is ended at once again
_KNOWN_S = 0.3  # until the head has heard of what was given back
_AGAIN_S = 5.0
_LEAST_CPUS = 1  # Ray keeps no more processes waiting than it has CPUs free
_TRIES = 3


class _Passer:
    def __init__(self) -> None:
        keep_lean()

    def hello(self) -> None: ...


class WarmWorkers:
    """Does its work in a thread of its own; nobody waits for it."""

    def __init__(self, free: Callable[[], Mapping[str, Mapping[str, float]]]) -> None:
        self._free = free  # node id -> what is free there
        self._changed = threading.Condition(threading.RLock())
        self._wanted: set[str] = set()
        self._made: set[str] = set()
        self._full: set[str] = set()  # nodes where none would be kept now
        self._starting = 0

    def open(self) -> None:
        threading.Thread(target=self._run, name="warm workers", daemon=True).start()

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """While an attempt starts, nothing else is."""
        with self._changed:
            self._starting += 1
        try:
            yield
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify()

    def used(self, node_id: str, *, fresh: bool) -> None:
        """Something has started on the node, in a fresh process or in one that waited. If that is
        not of our making Ray has some of its own there, and there may be more."""
        with self._changed:
            if fresh or node_id in self._made:
                self._made.discard(node_id)
                self._want({node_id})

    def left(self, node_ids: Iterable[str]) -> None:
        """Slices on these nodes have given back what they had."""
        with self._changed:
            vacated = self._full.intersection(node_ids)
            self._full -= vacated
        if vacated:
            later = threading.Timer(_KNOWN_S, self._want, (vacated,))
            later.daemon = True
            later.start()

    # inside

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._can_work)
            time.sleep(_LATER_S)
            with self._changed:
                if not self._can_work():
                    continue
                wanted, self._wanted = self._wanted, set()
            try:
                self._make(self._with_room(wanted))
            except Exception:  # starts are slower without it, no more
                traceback.print_exc()
                time.sleep(_AGAIN_S)

    def _want(self, node_ids: set[str]) -> None:
        with self._changed:
            self._wanted |= node_ids
            self._changed.notify()

    def _can_work(self) -> bool:
        return bool(self._wanted) and not self._starting

    def _with_room(self, wanted: set[str]) -> set[str]:
        free = self._free()
        full = {one for one in wanted & free.keys() if free[one].get("CPU", 0) < _LEAST_CPUS}
        with self._changed:
            self._full |= full
        return wanted & free.keys() - full

    def _make(self, node_ids: set[str]) -> None:
        for _ in range(_TRIES):
            if not node_ids:
                return
            spent = _start_processes(node_ids)
            with self._changed:
                self._made |= node_ids - spent
            node_ids = spent


def _start_processes(node_ids: Iterable[str]) -> set[str]:
    """The nodes that had a process waiting: it is gone with this."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    actors: dict[str, Any] = {}
    for node_id in node_ids:
        strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
        made = ray.remote(_Passer).options(num_cpus=0, scheduling_strategy=strategy)
        actors[node_id] = made.remote()
    asked = {actor.hello.remote(): node_id for node_id, actor in actors.items()}
    up, _ = ray.wait(list(asked), num_returns=len(asked), timeout=TAKEN_S)
    for actor in actors.values():
        ray.kill(actor, no_restart=True)
    return {asked[reference] for reference in up}
