"""The most each attempt used, kept at its end; and what that suggests for the same job again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from runyard.domain import events, peaks
from runyard.domain.events import StoredEvent
from runyard.domain.job import Job
from runyard.domain.monitoring.series import Sample
from runyard.domain.peaks import EarlierRun, Peak, Suggestion
from runyard.domain.states import AttemptEnd
from runyard.engine.loop import Loop
from runyard.engine.parts import Parts
from runyard.stores.base import Transaction

_EVERY_S = 600.0  # also for what other servers of a shared store have kept
_REMEMBERED = 5000  # runs that suggestions are made from
_OF_ONE_JOB = 5
_MEMORY = ("system.rss_mb", "system.pss_mb")
_CPU = "system.cpu_percent"
_ENDS = frozenset(
    {events.JOB_COMPLETED, events.JOB_FAILED, events.JOB_CANCELLED, events.JOB_RETRYING}
)

Likeness = tuple[str, str, str | tuple[str, ...]]  # owner, name, command


@dataclass(slots=True)
class _Most:
    """So far. Pages that its processes share are counted once by `pss`, which is read now and
    then only, and often by `rss`, which is read at every look."""

    rss_mb: float | None = None
    pss_mb: float | None = None
    rss_now_mb: float = 0.0
    counted_once: float = 1.0  # the share of rss that pss was when it was last read
    cpu_percent: float | None = None
    gpu_memory_mb: float | None = None

    def take(self, sample: Sample) -> None:
        name, value = sample.name, sample.value
        if name == _MEMORY[0]:
            self.rss_now_mb = value
            self.rss_mb = max(self.rss_mb or 0.0, value)
        elif name == _MEMORY[1]:
            self.pss_mb = max(self.pss_mb or 0.0, value)
            if value > 0 and self.rss_now_mb > 0:
                self.counted_once = min(1.0, value / self.rss_now_mb)
        elif name == _CPU:
            self.cpu_percent = max(self.cpu_percent or 0.0, value)
        elif name.startswith("gpu.") and name.endswith(".memory_mb"):
            self.gpu_memory_mb = max(self.gpu_memory_mb or 0.0, value)

    @property
    def memory_mb(self) -> float | None:
        """What it really took, never less than was read exactly."""
        if self.rss_mb is None or self.pss_mb is None:
            return self.pss_mb if self.rss_mb is None else self.rss_mb
        return max(self.pss_mb, self.rss_mb * self.counted_once)


class PeakKeeping:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._most: dict[tuple[int, int], _Most] = {}  # (job, attempt)
        self._ended: set[int] = set()
        self._known: dict[Likeness, list[EarlierRun]] = {}
        self._loop = Loop("peaks", self._tick, _EVERY_S)

    def start(self) -> None:
        self._parts.board.on_samples(self._sampled)
        self._parts.store.subscribe(self._heard)
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def suggestion(self, job: Job) -> Suggestion | None:
        """From earlier runs of the same command by the same person under the same name."""
        with self._lock:
            earlier = list(self._known.get((job.owner, job.spec.name, job.spec.command), ()))
        return peaks.suggestion([run for run in earlier if run.job_ref != job.ref])

    def _sampled(self, job_id: int, attempt: int, samples: Sequence[Sample]) -> None:
        with self._lock:
            most = self._most.get((job_id, attempt))
            for sample in samples:
                if sample.name.startswith(("system.", "gpu.")):
                    if most is None:
                        most = self._most[job_id, attempt] = _Most()
                    most.take(sample)

    def _heard(self, told: Sequence[StoredEvent]) -> None:
        ended = {one.job_id for one in told if one.event.code in _ENDS and one.job_id is not None}
        with self._lock:
            measured = {job_id for job_id, _ in self._most} & ended
            self._ended |= measured
        if measured:
            self._loop.wake()

    def _tick(self) -> float | None:
        with self._lock:
            ended, self._ended = self._ended, set()
            keys = [key for key in self._most if key[0] in ended]
        if keys:
            self._keep(keys)
        with self._parts.store.read() as reader:
            runs = reader.earlier_runs(_REMEMBERED)
        known: dict[Likeness, list[EarlierRun]] = {}
        for run in runs:
            same = known.setdefault((run.owner, run.name, run.command), [])
            if len(same) < _OF_ONE_JOB:
                same.append(run)
        with self._lock:
            self._known = known
        return None

    def _keep(self, keys: Sequence[tuple[int, int]]) -> None:
        with self._parts.store.read() as reader:
            jobs = {job.id: job for job in reader.jobs_by_id([job_id for job_id, _ in keys])}
            names = [jobs[job_id].attempt_id(n) for job_id, n in keys if job_id in jobs]
            attempts = reader.attempts_by_id(names)
        found: list[Peak] = []
        for key in keys:
            job = jobs.get(key[0])
            attempt = attempts.get(job.attempt_id(key[1])) if job else None
            if attempt is not None and attempt.end is None:
                continue  # a newer one of the same job, still at it
            with self._lock:
                most = self._most.pop(key)
            if attempt is None or attempt.end is AttemptEnd.NEVER_STARTED:
                continue
            ran = attempt.started_at is not None and attempt.ended_at is not None
            seconds = attempt.ended_at - attempt.started_at if ran else None  # type: ignore[operator]
            found.append(
                Peak(
                    attempt.attempt_id,
                    most.memory_mb,
                    most.gpu_memory_mb,
                    most.cpu_percent,
                    seconds,
                )
            )

        def work(tx: Transaction) -> None:
            for peak in found:
                if tx.attempt(peak.attempt_id) is not None:
                    tx.put_peak(peak)

        if found:
            self._parts.store.write(work, durable=False)
