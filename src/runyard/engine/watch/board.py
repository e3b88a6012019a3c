"""What is known now of running jobs and of machines; kept in memory, bounded, for any thread.

Nothing here waits: whoever listens must be quick. History is the business of metric_history.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from runyard.domain.monitoring.series import Sample, Window
from runyard.domain.progress.estimate import Eta
from runyard.engine import server_log
from runyard.engine.watch.watchers import Watchers

_REMEMBERED = 10_000
MOST_NAMES = 2000  # series of one job kept in memory; more of them are a mistake of the program
MOST_PIDS = 10_000  # of one attempt

HearSamples = Callable[[int, int, Sequence[Sample]], None]
HearNodeSamples = Callable[[str, Sequence[Sample]], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an attempt is, as far as it tells."""

    fraction: float | None  # 0 to 1
    step: int | None
    total_steps: int | None
    epoch: float | None
    total_epochs: float | None
    eta: Eta | None
    source: str  # what told it: report, tensorboard, or a family of log lines
    phase: str | None  # training, evaluating, saving ... as far as the log tells
    step_at: float | None  # when the last new step was seen
    at: float


@dataclass(frozen=True, slots=True)
class Health:
    level: str  # ok, warning, error, critical, unknown
    code: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    since: float | None = None


UNKNOWN = Health("unknown")


class _Subject:
    """A job or a machine: its series, and what was concluded about it."""

    __slots__ = ("attempt", "health", "pids", "progress", "windows")

    def __init__(self) -> None:
        self.attempt = 0
        self.windows: dict[str, Window] = {}
        self.progress: Progress | None = None
        self.health = UNKNOWN
        self.pids: set[int] = set()

    def take(self, samples: Iterable[Sample], size: int) -> None:
        for sample in samples:
            window = self.windows.get(sample.name)
            if window is None:
                if len(self.windows) >= MOST_NAMES:
                    continue
                window = self.windows[sample.name] = Window(sample.name, size)
            window.append(sample)

    def latest(self) -> dict[str, Sample]:
        found = ((name, window.last()) for name, window in self.windows.items())
        return {name: sample for name, sample in found if sample is not None}

    def window(self, name: str, since: float | None) -> list[Sample]:
        found = self.windows.get(name)
        if found is None:
            return []
        return found.samples() if since is None else found.since(since)


class Board:
    """Series hold `history_size` samples each. A new attempt of a job begins with empty ones."""

    def __init__(self, history_size: int = 1000) -> None:
        self._size = history_size
        self._lock = threading.Lock()
        self._jobs: dict[int, _Subject] = {}
        self._nodes: dict[str, _Subject] = {}
        self._gone: dict[int, int] = {}  # job -> its last attempt, when it was forgotten
        self.watchers = Watchers()  # who looks at what, as far as they tell
        self._hear_samples: list[HearSamples] = []
        self._hear_node_samples: list[HearNodeSamples] = []
        self._hear_told: list[Callable[[int], None]] = []

    # jobs

    def record(self, job_id: int, attempt: int, samples: Sequence[Sample]) -> None:
        """Samples of an older attempt go to the listeners only."""
        if not samples:
            return
        self.restore(job_id, attempt, samples)
        for hear in self._hear_samples:
            with _kept_apart():
                hear(job_id, attempt, samples)

    def restore(self, job_id: int, attempt: int, samples: Sequence[Sample]) -> None:
        """As `record`, for what is in the history already: nobody is told."""
        with self._lock:
            if attempt <= self._gone.get(job_id, 0):
                return
            subject = self._begin(job_id, attempt)
            if attempt == subject.attempt:
                subject.take(samples, self._size)

    def note_pids(self, job_id: int, attempt: int, pids: Sequence[int]) -> None:
        """Processes that were seen to be the attempt's, also those that have ended since."""
        with self._lock:
            subject = self._jobs.get(job_id)
            if subject is not None and subject.attempt == attempt:
                if len(subject.pids) > MOST_PIDS:
                    subject.pids = set()
                subject.pids |= set(pids)

    def pids(self, job_id: int, attempt: int) -> frozenset[int]:
        with self._lock:
            subject = self._jobs.get(job_id)
            mine = subject is not None and subject.attempt == attempt
            return frozenset(subject.pids) if subject is not None and mine else frozenset()

    def begin(self, job_id: int, attempt: int) -> None:
        """A new attempt runs: what was known of the one before it is past."""
        with self._lock:
            self._begin(job_id, attempt)

    def latest(self, job_id: int) -> dict[str, Sample]:
        with self._lock:
            subject = self._jobs.get(job_id)
            return subject.latest() if subject else {}

    def window(self, job_id: int, name: str, since: float | None = None) -> list[Sample]:
        """Oldest first."""
        with self._lock:
            subject = self._jobs.get(job_id)
            return subject.window(name, since) if subject else []

    def names(self, job_id: int) -> list[str]:
        with self._lock:
            subject = self._jobs.get(job_id)
            return sorted(subject.windows) if subject else []

    def jobs(self) -> list[int]:
        """Those of which something is known."""
        with self._lock:
            return sorted(self._jobs)

    def set_progress(self, job_id: int, progress: Progress) -> None:
        with self._lock:
            if job_id in self._jobs or job_id not in self._gone:
                self._jobs.setdefault(job_id, _Subject()).progress = progress
        self._told(job_id)

    def progress(self, job_id: int) -> Progress | None:
        with self._lock:
            subject = self._jobs.get(job_id)
            return subject.progress if subject else None

    def set_health(self, job_id: int, health: Health) -> None:
        same = True
        with self._lock:
            if job_id in self._jobs or job_id not in self._gone:
                subject = self._jobs.setdefault(job_id, _Subject())
                same, subject.health = subject.health == health, health
        if not same:
            self._told(job_id)

    def health(self, job_id: int) -> Health:
        with self._lock:
            subject = self._jobs.get(job_id)
            return subject.health if subject else UNKNOWN

    def forget(self, job_id: int, attempt: int | None = None) -> None:
        """Its newest attempt has ended; the history is in the store. What is still told of that
        attempt afterwards goes to the listeners only. With `attempt`, a later one is kept."""
        with self._lock:
            subject = self._jobs.get(job_id)
            if subject is not None and (attempt is None or subject.attempt <= attempt):
                del self._jobs[job_id]
                self._gone[job_id] = subject.attempt
                while len(self._gone) > _REMEMBERED:
                    del self._gone[next(iter(self._gone))]

    def on_samples(self, hear: HearSamples) -> None:
        """`hear(job_id, attempt, samples)` is called by the recording thread."""
        self._hear_samples.append(hear)

    def on_told(self, hear: Callable[[int], None]) -> None:
        """`hear(job_id)` is called when its progress or its health was set."""
        self._hear_told.append(hear)

    def _told(self, job_id: int) -> None:
        for hear in self._hear_told:
            with _kept_apart():
                hear(job_id)

    def keep(self, history_size: int) -> None:
        """So many samples of each series that begins from now on."""
        self._size = history_size

    def tell_nobody(self) -> None:
        """For a yard that only looks: what it measures is recorded by others."""
        self._hear_samples.clear()
        self._hear_node_samples.clear()

    # machines

    def record_node(self, node_id: str, samples: Sequence[Sample]) -> None:
        if not samples:
            return
        with self._lock:
            self._nodes.setdefault(node_id, _Subject()).take(samples, self._size)
        for hear in self._hear_node_samples:
            with _kept_apart():
                hear(node_id, samples)

    def node_latest(self, node_id: str) -> dict[str, Sample]:
        with self._lock:
            subject = self._nodes.get(node_id)
            return subject.latest() if subject else {}

    def node_window(self, node_id: str, name: str, since: float | None = None) -> list[Sample]:
        with self._lock:
            subject = self._nodes.get(node_id)
            return subject.window(name, since) if subject else []

    def node_names(self, node_id: str) -> list[str]:
        with self._lock:
            subject = self._nodes.get(node_id)
            return sorted(subject.windows) if subject else []

    def on_node_samples(self, hear: HearNodeSamples) -> None:
        """`hear(node_id, samples)` is called by the recording thread."""
        self._hear_node_samples.append(hear)

    def _begin(self, job_id: int, attempt: int) -> _Subject:
        subject = self._jobs.setdefault(job_id, _Subject())
        if attempt > subject.attempt:
            subject.attempt = attempt
            subject.windows = {}
            subject.progress = None
            subject.pids = set()
        return subject


@contextmanager
def _kept_apart() -> Iterator[None]:
    """One listener that fails must not take the samples from the others."""
    try:
        yield
    except Exception as error:
        server_log.of().opt(exception=error).error("a listener of the board failed")
