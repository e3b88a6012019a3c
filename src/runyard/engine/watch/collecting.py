"""The loop that measures this node and what its attempts use, and tells the board."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from runyard.domain.job import Attempt
from runyard.domain.monitoring.series import Sample
from runyard.engine.loop import Loop
from runyard.engine.parts import Parts
from runyard.engine.watch import attempt_use, watchers
from runyard.executors.base import Usage
from runyard.probes.readings import GpuReading

WATCHED_S = 1.0
_APART_S = 1e-6  # what tells two errors of one look apart
# While somebody looks at the whole, so many attempts are measured every second for them; of more
# only those that are looked at themselves.
FEW = 16
_NODE_NAMES = (
    "cpu_percent",
    "memory_percent",
    "memory_used_mb",
    "disk_percent",
    "disk_free_gb",
    "disk_read_mb_s",
    "disk_write_mb_s",
    "net_in_mb_s",
    "net_out_mb_s",
)
_GPU_NAMES = (
    "util",
    "memory_mb",
    "memory_percent",
    "temperature",
    "power_w",
    "ecc_errors",
    "throttled",
)


class Collecting:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._interval = parts.settings.monitoring_interval
        self._due = 0.0
        self._usage: dict[str, Usage] = {}
        # Looks often whether somebody watches, which costs nothing.
        self._loop = Loop("collecting", self._tick, min(WATCHED_S, self._interval))

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def every(self, seconds: float) -> None:
        """Another interval from now on."""
        if seconds != self._interval:
            self._interval = seconds
            self._due = 0.0

    def _tick(self) -> float | None:
        everything = time.monotonic() >= self._due
        if everything:
            self._due = time.monotonic() + self._interval
        if everything or self._parts.board.watchers.anybody():
            self.measure(everything=everything)
        return None

    def measure(self, *, everything: bool = True) -> None:
        """The node, and its attempts: all, or only those that somebody looks at."""
        at = self._parts.clock()
        gpu_meter = self._parts.gpu_meter
        readings = gpu_meter.readings() if gpu_meter else []
        self._parts.board.record_node(self._parts.node_id, list(self._node(readings, at)))
        attempts = self._attempts(everything)
        if not attempts:
            return
        by_uuid = {reading.uuid: reading for reading in readings}
        memory = self._gpu_memory(attempts, by_uuid)
        for attempt, usage in self._use_of(attempts):
            before = self._usage.get(attempt.attempt_id)
            self._usage[attempt.attempt_id] = usage
            samples = [
                *attempt_use.process_samples(before, usage, at),
                *attempt_use.gpu_samples(attempt.gpus, by_uuid, memory, usage.pids, at),
            ]
            self._parts.board.record(attempt.job_id, attempt.number, samples)
            self._parts.board.note_pids(attempt.job_id, attempt.number, usage.pids)

    def _node(self, gpus: Sequence[GpuReading], at: float) -> Iterator[Sample]:
        if self._parts.node_meter is not None:
            reading = self._parts.node_meter.read()
            for name in _NODE_NAMES:
                if (value := getattr(reading, name)) is not None:
                    yield Sample(f"node.{name}", at, float(value))
        for gpu in gpus:
            for name in _GPU_NAMES:
                if (value := getattr(gpu, name)) is not None:
                    yield Sample(f"gpu.{gpu.index}.{name}", at, float(value))
            if gpu.xids is not None:
                yield from self._xids(gpu.index, gpu.xids, at)

    def _xids(self, index: int, numbers: Sequence[int], at: float) -> Iterator[Sample]:
        """All of them: the last of several often only follows from the first."""
        for number in numbers:
            self._parts.tallies.xids.add(str(index), str(number))
        for place, number in enumerate(dict.fromkeys(numbers) or (0,)):
            yield Sample(f"gpu.{index}.xid", at + place * _APART_S, float(number))

    def _attempts(self, everything: bool) -> list[Attempt]:
        with self._parts.store.read() as reader:
            live = reader.live_attempts(self._parts.node_id)
        known = {attempt.attempt_id for attempt in live}
        self._usage = {one: usage for one, usage in self._usage.items() if one in known}
        if everything or len(live) <= FEW:
            return live
        looked_at = self._parts.board.watchers
        return [one for one in live if looked_at.is_watched(watchers.of_job(one.job_id))]

    def _gpu_memory(
        self, attempts: Sequence[Attempt], known: Mapping[str, GpuReading]
    ) -> dict[str, Mapping[int, int]]:
        meter = self._parts.gpu_meter
        held = {grant.uuid for attempt in attempts for grant in attempt.gpus}
        return {uuid: meter.memory_by_process(uuid) for uuid in held & known.keys() if meter}

    def _use_of(self, attempts: Sequence[Attempt]) -> Iterator[tuple[Attempt, Usage]]:
        by_executor: dict[str, dict[str, Attempt]] = {}
        for attempt in attempts:
            by_executor.setdefault(attempt.executor, {})[attempt.attempt_id] = attempt
        for name, mine in by_executor.items():
            executor = self._parts.executors.get(name)
            for attempt_id, usage in (executor.usage(list(mine)) if executor else {}).items():
                yield mine[attempt_id], usage
