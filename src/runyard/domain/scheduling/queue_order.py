"""Who comes first: high before medium before low, then by time in the queue, then by id."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from runyard.domain.job import Priority
from runyard.domain.scheduling.view import ShapeView, WaitingJobView

OrderKey = tuple[int, float, int]


def order_key(priority: Priority, queued_at: float, job_id: int) -> OrderKey:
    """Smaller goes first."""
    return (priority.rank, queued_at, job_id)


class QueueWalk:
    """Walks the jobs of all shapes in queue order; a shape can be left out from here on."""

    def __init__(self, shapes: Sequence[ShapeView]) -> None:
        self._shapes = shapes
        self._left_out: set[int] = set()
        self._heap: list[tuple[OrderKey, int, int]] = []
        for place, shape in enumerate(shapes):
            if shape.jobs:
                self._heap.append((_key(shape, 0), place, 0))
        heapq.heapify(self._heap)

    def leave_out(self, shape_id: int) -> None:
        self._left_out.add(shape_id)

    def __iter__(self) -> Iterator[tuple[ShapeView, WaitingJobView]]:
        while self._heap:
            _, place, index = self._heap[0]
            shape = self._shapes[place]
            if shape.id in self._left_out:
                heapq.heappop(self._heap)
                continue
            if index + 1 < len(shape.jobs):
                heapq.heapreplace(self._heap, (_key(shape, index + 1), place, index + 1))
            else:
                heapq.heappop(self._heap)
            yield shape, shape.jobs[index]


def _key(shape: ShapeView, index: int) -> OrderKey:
    job = shape.jobs[index]
    return order_key(shape.priority, job.queued_at, job.job_id)
