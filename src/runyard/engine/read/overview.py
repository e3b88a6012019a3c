"""What is known right now, of the whole and of one job, as far as it is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runyard.domain import states
from runyard.domain.job import Job
from runyard.domain.monitoring.alert import AlertFilter, AlertLevel, AlertStatus
from runyard.domain.monitoring.series import Sample
from runyard.engine.history.metric_history import MetricHistory
from runyard.engine.node.machines import GpuView, Machines
from runyard.engine.parts import Parts
from runyard.engine.read.views import JobView, QueueStatus, Views
from runyard.engine.watch import watchers
from runyard.stores.base import Reader
from runyard.stores.base_machines import Node
from runyard.stores.base_metrics import MetricRange, Series

_PSS_GOOD_FOR_S = 120.0
_MB_PER_GB = 1024.0


@dataclass(frozen=True, slots=True)
class NodeNow:
    node: Node
    latest: Mapping[str, Sample]  # empty where nothing was measured lately


@dataclass(frozen=True, slots=True)
class Use:
    """What an attempt uses against what it was given; None where it was not measured."""

    at: float | None
    cpu_cores: float | None
    cpu_cores_given: float
    memory_gb: float | None
    memory_gb_given: float
    gpu_util: float | None
    gpu_memory_percent: float | None
    processes: int | None

    @property
    def cpu_ratio(self) -> float | None:
        return _ratio(self.cpu_cores, self.cpu_cores_given)

    @property
    def memory_ratio(self) -> float | None:
        return _ratio(self.memory_gb, self.memory_gb_given)


@dataclass(frozen=True, slots=True)
class JobNow:
    view: JobView
    latest: Mapping[str, Sample]
    use: Use | None  # None unless an attempt lives


@dataclass(frozen=True, slots=True)
class Overview:
    at: float
    nodes: tuple[NodeNow, ...]
    gpus: tuple[GpuView, ...]
    queue: QueueStatus
    running: tuple[JobNow, ...]
    alerts: Mapping[str, int]  # level -> how many are not closed
    oldest_wait: float | None  # since when the first of the ready jobs waits


class Overviews:
    def __init__(
        self, parts: Parts, views: Views, machines: Machines, history: MetricHistory
    ) -> None:
        self._parts = parts
        self._views = views
        self._machines = machines
        self._history = history

    def now(self, *, looking: bool = True) -> Overview:
        """`looking`: for somebody who will look again, and is shown newer figures then."""
        board = self._parts.board
        if looking:
            board.watchers.watch(watchers.SYSTEM)
        queue = self._views.queue(0)
        with self._parts.store.read() as reader:
            nodes = tuple(self._node(reader, node) for node in reader.nodes())
            heads = [shape.head_queued_at for shape in reader.waiting_shapes()]
            alerts = {level.value: _not_closed(reader, level) for level in AlertLevel}
        return Overview(
            at=self._parts.clock(),
            nodes=nodes,
            gpus=tuple(self._machines.gpus()),
            queue=queue,
            running=tuple(
                JobNow(view, latest, _use(view, latest))
                for view in queue.running
                for latest in (board.latest(view.job.id),)
            ),
            alerts=alerts,
            oldest_wait=min(heads, default=None),
        )

    def job(self, ref: str) -> JobNow:
        view = self._views.job(ref)
        job, board = view.job, self._parts.board
        board.watchers.watch(watchers.of_job(job.id))
        latest = board.latest(job.id)
        if not latest and job.attempt_number:  # it has ended, or runs under another server
            tails = self._history.tails(job.id, job.attempt_number, None, 1)
            latest = {name: samples[-1] for name, samples in tails.items()}
        return JobNow(view, latest, _use(view, latest) if _lives(job) else None)

    def history(
        self,
        *,
        job: str | None,
        node: str | None,
        names: Sequence[str] | None,
        most: int,
        chosen: MetricRange,
    ) -> dict[str, Series]:
        """Of a job, or of a node (id or name); of this server's node when neither is named."""
        if job is not None:
            return self._history.series(job, names, most, chosen)
        node_id = self._machines.find(node).node_id if node is not None else self._parts.node_id
        return self._history.node_series(node_id, names, most, chosen)

    def _node(self, reader: Reader, node: Node) -> NodeNow:
        if node.node_id == self._parts.node_id:
            return NodeNow(node, self._parts.board.node_latest(node.node_id))
        lease_s = self._parts.settings.server_lease_s
        if self._parts.store.now() - node.heartbeat_at > lease_s:
            return NodeNow(node, {})
        since = MetricRange(since=self._parts.clock() - lease_s)
        names = reader.node_metric_names(node.node_id)
        found = {name: reader.node_series(node.node_id, name, 1, since).samples for name in names}
        return NodeNow(node, {name: each[-1] for name, each in found.items() if each})


def _lives(job: Job) -> bool:
    return job.status in states.ACTIVE


def _not_closed(reader: Reader, level: AlertLevel) -> int:
    statuses = (AlertStatus.OPEN, AlertStatus.ACKNOWLEDGED)
    return reader.alerts(AlertFilter(statuses=statuses, levels=(level,)), limit=1).total


def _use(view: JobView, latest: Mapping[str, Sample]) -> Use:
    given = view.attempt.request if view.attempt else view.job.spec.request
    rss = latest.get("system.rss_mb")
    cpu = _value(latest, "system.cpu_percent")
    memory = _memory_mb(latest)
    processes = _value(latest, "system.processes")
    return Use(
        at=rss.at if rss else None,
        cpu_cores=None if cpu is None else cpu / 100,
        cpu_cores_given=given.cpu_milli / 1000,
        memory_gb=None if memory is None else memory / _MB_PER_GB,
        memory_gb_given=given.memory_mb / _MB_PER_GB,
        gpu_util=_value(latest, "gpu.util"),
        gpu_memory_percent=_value(latest, "gpu.memory_percent"),
        processes=None if processes is None else int(processes),
    )


def _memory_mb(latest: Mapping[str, Sample]) -> float | None:
    """Shared pages counted in parts are the truth, while they are not old."""
    rss, pss = latest.get("system.rss_mb"), latest.get("system.pss_mb")
    if rss is not None and pss is not None and rss.at - pss.at < _PSS_GOOD_FOR_S:
        return min(rss.value, pss.value)
    return rss.value if rss else None


def _value(latest: Mapping[str, Sample], name: str) -> float | None:
    sample = latest.get(name)
    return sample.value if sample else None


def _ratio(used: float | None, given: float) -> float | None:
    return used / given if used is not None and given > 0 else None
