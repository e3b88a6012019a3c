"""The history of metrics: samples go to the store in batches, and come back as few or many points.

Whoever records is never held up. What was read from an attempt's files, and how far they were
read, is written in one transaction: after a restart nothing is missing and nothing is there twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from runyard.domain import errors
from runyard.domain.monitoring.series import Sample
from runyard.engine import server_log
from runyard.engine.commands import find
from runyard.engine.history import read_marks
from runyard.engine.loop import Loop
from runyard.engine.parts import Parts
from runyard.stores.base import Transaction
from runyard.stores.base_metrics import EVERYTHING, MetricRange, Series

BATCH_S = 0.3  # from the first sample until it is written with all that came since
_IDLE_S = 60.0  # only as a safety net: whoever puts something wakes the loop
_AGAIN_S = 2.0  # while the store cannot be written
_PER_TRANSACTION = 1000  # samples; more would keep other writers waiting
_MOST_WAITING = 200_000  # samples in memory while the store cannot be written
_FLUSH_PATIENCE_S = 2.0


@dataclass(slots=True)
class _Group:
    """What must be written together or not at all."""

    jobs: dict[tuple[int, int], list[Sample]] = field(default_factory=dict)  # (job, attempt)
    nodes: dict[str, list[Sample]] = field(default_factory=dict)
    marks: dict[str, str | None] = field(default_factory=dict)
    size: int = 0

    def is_empty(self) -> bool:
        return not (self.jobs or self.nodes or self.marks)

    def write(self, tx: Transaction) -> None:
        for (job_id, attempt), samples in self.jobs.items():
            tx.insert_points(job_id, attempt, samples)
        for node_id, samples in self.nodes.items():
            tx.insert_node_points(node_id, samples)
        for attempt_id, mark in self.marks.items():
            read_marks.put(tx, attempt_id, mark)


class MetricHistory:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = threading.RLock()
        self._turn = threading.Lock()  # of writing
        self._waiting: list[_Group] = []
        self._open: _Group | None = None
        self._size = 0
        self._due = 0.0  # when the first of what waits is written
        self._failing = False
        self.dropped = 0  # samples for which there was no room
        self._loop = Loop("metric history", self._tick, _IDLE_S)
        parts.board.on_samples(self.put)
        parts.board.on_node_samples(self.put_node)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
        self.flush()

    # writing

    def put(self, job_id: int, attempt: int, samples: Sequence[Sample]) -> None:
        with self._grouped(len(samples)) as group:
            if group is not None:
                group.jobs.setdefault((job_id, attempt), []).extend(samples)

    def put_node(self, node_id: str, samples: Sequence[Sample]) -> None:
        with self._grouped(len(samples)) as group:
            if group is not None:
                group.nodes.setdefault(node_id, []).extend(samples)

    def mark(self, attempt_id: str, read_to: str | None) -> None:
        """How far its files were read, as whoever reads them wants to know it after a restart;
        None when they were read to the end. Inside `together` with what was read."""
        with self._grouped(0) as group:
            if group is not None:
                group.marks[attempt_id] = read_to

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that is put by this thread meanwhile is written in one transaction. Be quick."""
        with self._lock:
            self._open = _Group()
            try:
                yield
            finally:
                group, self._open = self._open, None
                if group is not None and not group.is_empty():
                    self._append(group)

    def has_room(self) -> bool:
        """Whoever can wait with reading more should, while this is False."""
        return self._size < _MOST_WAITING // 2

    def flush(self) -> bool:
        """Write all that waits; False if the store cannot be written now."""
        done = self._flush()
        if not done:
            self._loop.wake()  # it goes on trying
        return done

    def _flush(self) -> bool:
        if not self._turn.acquire(timeout=_FLUSH_PATIENCE_S):
            return False
        try:
            return self._write_waiting()
        finally:
            self._turn.release()

    @contextmanager
    def _grouped(self, size: int) -> Iterator[_Group | None]:
        with self._lock:
            if self._size + size > _MOST_WAITING:
                self.dropped += size
                yield None
                return
            self._size += size
            group = self._open
            if group is None:
                group = _Group()
                self._append(group)
            group.size += size
            yield group

    def _append(self, group: _Group) -> None:
        self._waiting.append(group)
        if len(self._waiting) == 1:
            self._due = time.monotonic() + BATCH_S
            self._loop.wake()

    def _tick(self) -> float | None:
        if not self._waiting:
            return None
        early = self._due - time.monotonic()
        if early > 0:
            return early
        done = self._flush()
        if done == self._failing:
            self._failing = not done
            if done:
                server_log.of().info("metrics are written again; {} were dropped", self.dropped)
            else:
                server_log.of().error("metrics cannot be written now; they wait in memory")
        return None if done else _AGAIN_S

    def _write_waiting(self) -> bool:
        with self._lock:
            groups, self._waiting = self._waiting, []
        place = alone = 0
        while place < len(groups):
            chunk = [groups[place]] if alone else _chunk(groups, place)
            try:
                self._parts.store.write(_merged(chunk).write, durable=False)
            except (errors.Unavailable, OSError):
                with self._lock:
                    self._waiting[:0] = groups[place:]
                return False
            except Exception as error:
                # One sample that the store cannot hold must not keep all others waiting for ever.
                if len(chunk) > 1:
                    alone = len(chunk)
                    continue
                server_log.of().opt(exception=error).error(
                    "{} samples were refused", chunk[0].size
                )
                self.dropped += chunk[0].size
            alone = max(0, alone - 1)
            place += len(chunk)
            with self._lock:
                self._size -= sum(group.size for group in chunk)
        return True

    # reading

    def series(
        self,
        ref: str | int,
        names: Sequence[str] | None,
        most: int,
        chosen: MetricRange = EVERYTHING,
    ) -> dict[str, Series]:
        """At most `most` samples of each; all names of the job when none are given."""
        self.flush()
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            wanted = reader.metric_names(job.id) if names is None else names
            return {name: reader.metric_series(job.id, name, most, chosen) for name in wanted}

    def node_series(
        self,
        node_id: str,
        names: Sequence[str] | None,
        most: int,
        chosen: MetricRange = EVERYTHING,
    ) -> dict[str, Series]:
        self.flush()
        with self._parts.store.read() as reader:
            wanted = reader.node_metric_names(node_id) if names is None else names
            return {name: reader.node_series(node_id, name, most, chosen) for name in wanted}

    def tails(
        self, job_id: int, attempt: int, names: Sequence[str] | None, most: int
    ) -> Mapping[str, list[Sample]]:
        """The newest of each series of one attempt, oldest first; series without any are left
        out."""
        with self._parts.store.read() as reader:
            wanted = reader.metric_names(job_id) if names is None else names
            found = {name: reader.metric_tail(job_id, attempt, name, most) for name in wanted}
            return {name: samples for name, samples in found.items() if samples}


def _chunk(groups: Sequence[_Group], start: int) -> list[_Group]:
    chunk = [groups[start]]
    size = chunk[0].size
    for group in groups[start + 1 :]:
        size += group.size
        if size > _PER_TRANSACTION:
            break
        chunk.append(group)
    return chunk


def _merged(groups: Sequence[_Group]) -> _Group:
    if len(groups) == 1:
        return groups[0]
    merged = _Group()
    for group in groups:
        for key, samples in group.jobs.items():
            merged.jobs.setdefault(key, []).extend(samples)
        for node_id, samples in group.nodes.items():
            merged.nodes.setdefault(node_id, []).extend(samples)
        merged.marks |= group.marks
        merged.size += group.size
    return merged
