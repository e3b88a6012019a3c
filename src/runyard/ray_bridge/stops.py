"""Requests to stop on their way to the slices of an attempt, and how long those may take.

A supervisor ends everything within the grace and a moment. What takes longer may hang without
being dead: its actor is killed, and with that goes the lifeline of all that is below it.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.deadlines import Late
from runyard.ray_bridge.slices import Slice
from runyard.supervisor.stop_request import Request

MARGIN_S = 5.0  # beyond the grace; also from an exit record to the end of what wrote it
_ASK_S = 0.25
_KILL_AGAIN_S = 15.0


class Stops:
    """`send` may be called by any thread, the rest by the attempt's own. `services_s` is what its
    services may take behind the grace of its main process."""

    def __init__(self, cluster: Cluster, slices: Sequence[Slice], services_s: float = 0.0) -> None:
        self._cluster = cluster
        self._slices = slices
        self._services_s = services_s
        self._lock = threading.Lock()
        self._passing: list[tuple[Any, Slice, Request]] = []  # not known to be heard
        self._due = math.inf
        self._killed_at: dict[int, float] = {}  # by index of the slice

    def send(self, request: Request) -> None:
        """To every slice that can still hear it."""
        sent = [
            (one.actor.stop.remote(request), one, request) for one in self._slices if one.can_hear
        ]
        grace_s = float(request["grace_s"])
        patience_s = grace_s + (self._services_s if grace_s > 0 else 0.0) + MARGIN_S
        with self._lock:
            self._passing += sent
            self._due = min(self._due, time.monotonic() + patience_s)

    def look(self) -> None:
        """What was lost on its way is sent again; what is overdue loses its actor."""
        self._see_arrive()
        now = time.monotonic()
        for one in self._slices:
            if self._is_overdue(one, now):
                self._killed_at[one.index] = now
                self._kill(one)

    def _see_arrive(self) -> None:
        import ray

        with self._lock:
            passing, self._passing = self._passing, []
        under_way = []
        for reference, one, request in passing:
            ready, _ = ray.wait([reference], timeout=0)
            if not ready:
                under_way.append((reference, one, request))
                continue
            try:
                self._cluster.get(reference, _ASK_S)
            except ray.exceptions.RayError:
                if one.can_hear:
                    under_way.append((one.actor.stop.remote(request), one, request))
        with self._lock:
            self._passing += under_way

    def _is_overdue(self, one: Slice, now: float) -> bool:
        if not one.can_hear or now - self._killed_at.get(one.index, -math.inf) < _KILL_AGAIN_S:
            return False
        if one.has_exit_record:  # nothing of it lives: only a long log may still be read
            return now - one.moved_at >= MARGIN_S
        return now >= self._due

    def _kill(self, one: Slice) -> None:
        print(f"{one.name} is overdue and loses its actor", file=sys.stderr, flush=True)
        try:
            self._cluster.kill(one.actor)
        except (Late, ValueError) as error:
            print(f"{one.name} could not be killed: {error}", file=sys.stderr, flush=True)
