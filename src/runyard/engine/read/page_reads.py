"""What the pages of the web ask beside jobs and queues: story, configuration, files, capacity."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard import __version__
from runyard.domain import errors
from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt, JobSpec
from runyard.domain.monitoring.alert import Alert
from runyard.engine import job_dirs
from runyard.engine.commands import find
from runyard.engine.history.metric_history import MetricHistory
from runyard.engine.launch import starts
from runyard.engine.parts import Parts
from runyard.engine.read import job_story
from runyard.engine.read.job_story import Chapter
from runyard.engine.read.views import JobView, Views
from runyard.engine.recover import failure_story
from runyard.engine.submit.previewing import Previews
from runyard.stores.base import ActiveAttempt, JobFilter
from runyard.stores.base_machines import Node
from runyard.stores.base_metrics import MetricRange, Series

_EVENTS = 1000
_ALERTS = 200  # told in words in one story
_WAITS = 200  # starts that the history of waits looks at
_EXCERPT_BEFORE_S = 1800.0
_EXCERPT_AFTER_S = 300.0


@dataclass(frozen=True, slots=True)
class Room:
    """What a node has and what attempts hold of it."""

    node: Node
    cpu_milli: int
    memory_mb: int
    gpu_milli: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Configuration:
    view: JobView
    submitted: JobSpec
    effective: JobSpec  # as the newest attempt was started, or the next one will be
    changes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class PastWait:
    job_ref: str
    queued_at: float
    scheduled_at: float


class PageReads:
    def __init__(
        self, parts: Parts, views: Views, history: MetricHistory, previews: Previews
    ) -> None:
        self._parts = parts
        self._views = views
        self._history = history
        self._began = time.monotonic()
        self.previews = previews

    def counts(self, chosen: JobFilter) -> dict[str, int]:
        """How many of these jobs have each status."""
        return self._views.counts(chosen)

    def story(self, ref: str) -> list[Chapter]:
        """The newest events of a job, oldest first."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            told: list[StoredEvent] = []
            while page := reader.events(job.id, after=told[-1].id if told else 0, limit=_EVENTS):
                told = [*told, *page][-_EVENTS:]
                if len(page) < _EVENTS:
                    break
            numbers = sorted(job_story.alerts_of(told))[-_ALERTS:]
            alerts = {one.id: one for one in map(reader.alert, numbers) if one is not None}
            return job_story.chapters(told, reader.attempts(job.id), alerts)

    def configuration(self, ref: str) -> Configuration:
        view = self._views.job(ref)
        with self._parts.store.read() as reader:
            attempts: list[Attempt] = reader.attempts(view.job.id)
        made = starts.ran_with(attempts, max(view.job.attempt_number, 1))
        effective = starts.Start(made).spec(view.job.spec)
        return Configuration(
            view, view.job.spec, effective, failure_story.changes_so_far(attempts)
        )

    def open_file(self, ref: str, path: str) -> int:
        """A file descriptor of one file of the job's output, which the caller closes. No link is
        followed on the way, so nothing outside of that directory can be reached."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
        folder = job_dirs.output_dir(job, str(self._parts.settings.data_dir))
        names = path.split("/")
        fd = None
        if not {"", ".", ".."} & set(names) and "\0" not in path:
            fd = _opened(folder, names)
        if fd is None:
            raise errors.NotFound(f"Job {job.ref} has no such file.", path=path[:200])
        return fd

    def rooms(self) -> tuple[list[Room], int]:
        """What is taken of each node, and how many attempts live in all."""
        with self._parts.store.read() as reader:
            nodes, active = reader.nodes(), reader.active_attempts()
        return [_room(node, active) for node in nodes], len(active)

    def past_waits(self) -> list[PastWait]:
        """How long the newest jobs that were started waited, oldest first."""
        with self._parts.store.read() as reader:
            jobs = reader.jobs(JobFilter(), limit=_WAITS).jobs
        found = [
            PastWait(job.ref, job.queued_at, job.scheduled_at)
            for job in jobs
            if job.scheduled_at is not None
            and job.attempt_number == 1  # later ones also waited for what went before them
            and job.scheduled_at >= job.queued_at
        ]
        return sorted(found, key=lambda one: one.scheduled_at)

    def excerpt(self, alert_id: int, most: int) -> tuple[Alert, dict[str, Series]]:
        """The series that an alert tells of, around the time that it was found."""
        with self._parts.store.read() as reader:
            alert = reader.alert(alert_id)
        if alert is None:
            raise errors.NotFound(f"There is no alert {alert_id}.", alert=alert_id)
        names = list(alert.evidence.get("series") or ())
        chosen = MetricRange(
            since=alert.opened_at - _EXCERPT_BEFORE_S,
            until=(alert.closed_at or alert.seen_at) + _EXCERPT_AFTER_S,
        )
        if alert.job_ref is not None:
            found = self._history.series(alert.job_ref, names, most, chosen)
        else:
            node_id = alert.node_id or self._parts.node_id
            found = self._history.node_series(node_id, names, most, chosen)
        return alert, {name: series for name, series in found.items() if series.samples}

    def about(self) -> dict[str, Any]:
        """Of this server; nothing secret."""
        settings, store = self._parts.settings, self._parts.store
        usable = self._parts.machine.usable_executors()
        with store.read() as reader:
            counts = reader.count_by_status()
            nodes = len(reader.nodes())
        return {
            "version": __version__,
            "node_id": self._parts.node_id,
            "uptime_s": round(time.monotonic() - self._began, 1),
            "database": {
                "kind": "postgresql" if store.shared else "sqlite",
                "size_bytes": None if store.shared else _size(settings.store_url),
            },
            "jobs": {status.value: many for status, many in counts.items()},
            "nodes": nodes,
            "executors": {name: name in usable for name in self._parts.executors},
            "settings": {name: getattr(settings, name) for name in _TOLD},
        }


_TOLD = (
    "max_concurrent",
    "gate_cpu",
    "gate_memory",
    "gate_disk",
    "resource_check_interval",
    "monitoring_interval",
    "max_retries",
    "retry_delays",
    "grace_s",
    "keep_days",
    "metrics_keep_days",
    "log_cap_mb",
    "cache_quota_gb",
    "session_days",
    "stall_min_s",
    "stall_action",
    "nan_action",
    "detectors_off",
    "on_shutdown",
    "notify_lang",
)


def _size(url: str) -> int | None:
    path = url.removeprefix("sqlite:///")
    sizes = []
    for ending in ("", "-wal"):
        try:
            sizes.append(os.stat(path + ending).st_size)
        except OSError:
            continue
    return sum(sizes) if sizes else None


def _room(node: Node, active: Sequence[ActiveAttempt]) -> Room:
    """A distributed attempt holds what it asked for once for each of its slices."""
    held = [
        (one.request, part.gpus)
        for one in active
        for part in (one.slices or (one,))
        if part.machine_id == node.machine_id
    ]
    return Room(
        node,
        cpu_milli=sum(request.cpu_milli for request, _ in held),
        memory_mb=sum(request.memory_mb for request, _ in held),
        gpu_milli=sum(grant.milli for _, gpus in held for grant in gpus),
        attempts=len(held),
    )


def _opened(folder: str, names: Sequence[str]) -> int | None:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    here = -1
    try:
        here = os.open(folder, flags | os.O_DIRECTORY)
        for name in names:
            last = name is names[-1]
            kind = flags | os.O_NOFOLLOW | (0 if last else os.O_DIRECTORY)
            below = os.open(name, kind, dir_fd=here)
            os.close(here)
            here = below
        if stat.S_ISREG(os.fstat(here).st_mode):
            return here
    except OSError:
        pass
    if here >= 0:
        os.close(here)
    return None
