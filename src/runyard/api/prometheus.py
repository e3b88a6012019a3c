"""The server in figures, in the format of Prometheus.

Base units (seconds, bytes, ratios), counters end in _total, and no label that grows without a
bound: jobs are named only when the setting `prometheus_jobs` allows it, and only while they run.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from runyard import __version__
from runyard.api import prometheus_nodes
from runyard.engine.read.overview import JobNow, Overview
from runyard.engine.tallies import Count, Spread, Tallies
from runyard.engine.yard import Yard

_GB = 1 << 30

Values = Mapping[tuple[str, ...], float]


def exposition(yard: Yard, accept: str) -> tuple[bytes, str]:
    """The text and its media type, as the client accepts them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(yard))
    ProcessCollector(registry=registry)
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


class _Figures(Collector):
    def __init__(self, yard: Yard) -> None:
        self._yard = yard

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        found = self._yard.overview(looking=False)
        yield InfoMetricFamily(
            "runyard_build",
            "What this server is.",
            {"version": __version__, "python": platform.python_version()},
        )
        yield from _queue(found)
        yield from _done(self._yard.tallies)
        yield from prometheus_nodes.figures(found, self._yard.node_id, self._yard.tallies.xids)
        dropped = self._yard.runtime.metric_history.dropped
        yield _counter(
            "runyard_metric_samples_dropped", "Samples of metrics that were lost.", {(): dropped}
        )
        most = self._yard.settings.prometheus_jobs
        if most:
            yield from _jobs(found.running[:most])


def _queue(found: Overview) -> Iterator[Metric]:
    queue = found.queue
    counts: Values = {(status,): float(count) for status, count in sorted(queue.counts.items())}
    yield _gauge("runyard_jobs", "Jobs by status.", counts, ["status"])
    waiting = queue.counts["pending"] + queue.counts["retrying"]
    yield _gauge("runyard_queue_depth", "Jobs that wait.", {(): waiting})
    oldest = max(0.0, found.at - found.oldest_wait) if found.oldest_wait else 0.0
    yield _gauge(
        "runyard_queue_oldest_wait_seconds",
        "How long the job that could start and has waited longest has waited.",
        {(): oldest},
    )
    running = len(found.running)
    yield _gauge("runyard_attempts_running", "Attempts that live.", {(): running})
    dispatching = int(queue.dispatching)
    yield _gauge("runyard_dispatching", "1 while waiting jobs are started.", {(): dispatching})
    yield _gauge("runyard_max_concurrent", "Most jobs at once.", {(): queue.max_concurrent})
    gates = queue.gates
    yield _gauge(
        "runyard_gate_load_ratio",
        "How busy the machine is, as the gates see it.",
        {(gate["name"],): gate["value"] / 100 for gate in gates},
        ["gate"],
    )
    yield _gauge(
        "runyard_gate_closed",
        "1 while this gate lets no job start.",
        {(gate["name"],): int(gate["closed"]) for gate in gates},
        ["gate"],
    )
    alerts: Values = {(level,): float(count) for level, count in found.alerts.items()}
    yield _gauge("runyard_alerts_open", "Alerts that are not closed.", alerts, ["level"])


def _done(tallies: Tallies) -> Iterator[Metric]:
    yield _counted(
        "runyard_attempts_started", "Attempts handed over.", tallies.starts, ["executor"]
    )
    yield _counted("runyard_attempts_ended", "Attempts that ended.", tallies.ends, ["end"])
    yield _counted("runyard_job_retries", "Jobs that failed and were put back.", tallies.retries)
    yield _counted(
        "runyard_http_requests",
        "Requests answered.",
        tallies.requests,
        ["method", "route", "status"],
    )
    for name, help_, spread, labels in (
        ("queue_wait", "From queued to handed over.", tallies.wait_s, []),
        ("cancel", "From the request to proven gone.", tallies.cancel_s, []),
        ("scheduler_pass", "One pass over the queue.", tallies.pass_s, []),
        ("store_write", "One write, from the asking to the commit.", tallies.write_s, []),
        ("http_request", "From the request to its whole answer.", tallies.request_s, ["route"]),
    ):
        yield _histogram(f"runyard_{name}_seconds", help_, spread, labels)


def _jobs(running: Iterable[JobNow]) -> Iterator[Metric]:
    labels = ["job", "name"]
    progress = GaugeMetricFamily(
        "runyard_job_progress_ratio", "How far a running job is.", labels=labels
    )
    loss = GaugeMetricFamily("runyard_job_loss", "Its newest loss.", labels=labels)
    cpu = GaugeMetricFamily("runyard_job_cpu_cores", "Cores that it uses.", labels=labels)
    memory = GaugeMetricFamily("runyard_job_memory_bytes", "Memory that it uses.", labels=labels)
    for each in running:
        job = each.view.job
        named = [job.ref, job.spec.name]
        progress.add_metric(named, job.progress / 100)
        if "loss" in each.view.watched.metrics:
            loss.add_metric(named, each.view.watched.metrics["loss"])
        if each.use and each.use.cpu_cores is not None:
            cpu.add_metric(named, each.use.cpu_cores)
        if each.use and each.use.memory_gb is not None:
            memory.add_metric(named, each.use.memory_gb * _GB)
    yield from (progress, loss, cpu, memory)


def _gauge(
    name: str,
    help_: str,
    values: Values,
    labels: list[str] | None = None,
) -> Metric:
    family = GaugeMetricFamily(name, help_, labels=labels or [])
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def _counter(
    name: str,
    help_: str,
    values: Values,
    labels: list[str] | None = None,
) -> Metric:
    family = CounterMetricFamily(name, help_, labels=labels or [])
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def _counted(name: str, help_: str, count: Count, labels: list[str] | None = None) -> Metric:
    # One without labels is there from the start, so that its first growth is seen.
    return _counter(name, help_, count.all() or ({} if labels else {(): 0.0}), labels)


def _histogram(name: str, help_: str, spread: Spread, labels: list[str]) -> Metric:
    family = HistogramMetricFamily(name, help_, labels=labels)
    for key, found in spread.all().items():
        buckets = [(_bound(bound), float(count)) for bound, count in found.counts]
        family.add_metric(list(key), buckets=buckets, sum_value=found.total)
    return family


def _bound(value: float) -> str:
    return "+Inf" if value == float("inf") else str(value)
