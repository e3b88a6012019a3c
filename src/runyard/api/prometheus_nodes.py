"""The node of this server and its GPUs in figures for Prometheus. Each server tells of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from runyard.domain.monitoring.series import Sample
from runyard.engine.node.machines import GpuView
from runyard.engine.read.overview import Overview
from runyard.engine.tallies import Count

_MB = float(1 << 20)
_GB = float(1 << 30)


@dataclass(frozen=True, slots=True)
class _Figure:
    name: str
    help: str
    sample: str
    times: float = 1.0


_OF_A_NODE = (
    _Figure("node_cpu_ratio", "CPU in use.", "cpu_percent", 0.01),
    _Figure("node_memory_ratio", "Memory in use.", "memory_percent", 0.01),
    _Figure("node_memory_used_bytes", "Memory in use.", "memory_used_mb", _MB),
    _Figure("node_disk_ratio", "The data directory's disk in use.", "disk_percent", 0.01),
    _Figure("node_disk_free_bytes", "Free on the data directory's disk.", "disk_free_gb", _GB),
    _Figure("node_disk_read_bytes_per_second", "Read from it.", "disk_read_mb_s", _MB),
    _Figure("node_disk_written_bytes_per_second", "Written to it.", "disk_write_mb_s", _MB),
    _Figure("node_network_received_bytes_per_second", "Received.", "net_in_mb_s", _MB),
    _Figure("node_network_sent_bytes_per_second", "Sent.", "net_out_mb_s", _MB),
)
_OF_A_GPU = (
    _Figure("gpu_utilization_ratio", "Time in which something ran on it.", "util", 0.01),
    _Figure("gpu_memory_used_bytes", "Memory in use.", "memory_mb", _MB),
    _Figure("gpu_temperature_celsius", "Its temperature.", "temperature"),
    _Figure("gpu_power_watts", "The power it takes.", "power_w"),
    _Figure("gpu_throttled", "1 while heat or a lack of power slow it down.", "throttled"),
)


def figures(found: Overview, node_id: str, xids: Count) -> Iterator[Metric]:
    """Absent where nothing was measured."""
    latest: Mapping[str, Sample] = next(
        (each.latest for each in found.nodes if each.node.node_id == node_id), {}
    )
    for figure in _OF_A_NODE:
        sample = latest.get(f"node.{figure.sample}")
        family = GaugeMetricFamily(f"runyard_{figure.name}", figure.help)
        if sample is not None:
            family.add_metric([], sample.value * figure.times)
        yield family
    gpus = [gpu for gpu in found.gpus if gpu.node_id == node_id]
    yield from _of_gpus(gpus, latest)
    errors = CounterMetricFamily(
        "runyard_gpu_xid_errors", "Errors the driver told of.", labels=["gpu", "xid"]
    )
    for labels, count in xids.all().items():
        errors.add_metric(list(labels), count)
    yield errors


def _of_gpus(gpus: Sequence[GpuView], latest: Mapping[str, Sample]) -> Iterator[Metric]:
    labels = ["gpu", "uuid"]
    for figure in _OF_A_GPU:
        family = GaugeMetricFamily(f"runyard_{figure.name}", figure.help, labels=labels)
        for gpu in gpus:
            sample = latest.get(f"gpu.{gpu.index}.{figure.sample}")
            if sample is not None:
                family.add_metric([str(gpu.index), gpu.uuid], sample.value * figure.times)
        yield family
    errors = CounterMetricFamily(
        "runyard_gpu_ecc_errors", "Uncorrected memory errors.", labels=labels
    )
    memory = GaugeMetricFamily("runyard_gpu_memory_bytes", "Its memory.", labels=labels)
    jobs = GaugeMetricFamily(
        "runyard_gpu_jobs", "Attempts that hold a share of it.", labels=labels
    )
    for gpu in gpus:
        named = [str(gpu.index), gpu.uuid]
        counted = latest.get(f"gpu.{gpu.index}.ecc_errors")
        if counted is not None:
            errors.add_metric(named, counted.value)
        memory.add_metric(named, gpu.memory_mb * _MB)
        jobs.add_metric(named, len(gpu.jobs))
    yield from (errors, memory, jobs)
