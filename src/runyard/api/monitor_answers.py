"""What is known right now as answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from runyard.api import metric_answers
from runyard.api.json_body import iso
from runyard.api.routes.nodes import node_answer
from runyard.domain.monitoring.series import Sample
from runyard.engine.node.machines import GpuView
from runyard.engine.read.overview import JobNow, NodeNow, Overview, Use
from runyard.engine.watch.board import Progress

_OF_THE_SYSTEM = ("system.", "gpu.")


def overview(found: Overview) -> dict[str, Any]:
    measured = {each.node.node_id: each.latest for each in found.nodes}
    return {
        "at": iso(found.at),
        "dispatching": found.queue.dispatching,
        "max_concurrent": found.queue.max_concurrent,
        "counts": found.queue.counts,
        "gates": list(found.queue.gates),
        "nodes": [_node(each) for each in found.nodes],
        "gpus": [_gpu(gpu, measured.get(gpu.node_id, {})) for gpu in found.gpus],
        "running": [_running(each) for each in found.running],
        "alerts": {"open": sum(found.alerts.values()), "by_level": dict(found.alerts)},
    }


def job(found: JobNow) -> dict[str, Any]:
    own: dict[str, Any] = {}
    system: dict[str, Any] = {}
    for name, sample in sorted(found.latest.items()):
        (system if name.startswith(_OF_THE_SYSTEM) else own)[name] = _latest(sample)
    return {
        **_running(found),
        "metrics": own,
        "system": system,
        "efficiency": metric_answers.efficiency(found.view.watched.efficiency),
    }


def _running(found: JobNow) -> dict[str, Any]:
    it, attempt, watched = found.view.job, found.view.attempt, found.view.watched
    return {
        "job_id": it.ref,
        "id": it.id,
        "name": it.spec.name,
        "owner": it.owner,
        "status": it.status.value,
        "stage": it.stage.value if it.stage else None,
        "node": attempt.node_id if attempt else None,
        "gpus": [grant.index for grant in attempt.gpus] if attempt else [],
        "attempt": it.attempt_number,
        "started_at": iso(it.started_at),
        "progress": _progress(it.progress, watched.progress),
        "eta": metric_answers.eta(watched.eta),
        "health": metric_answers.health(watched.health),
        "metrics": metric_answers.latest(watched.metrics),
        "use": _use(found.use),
    }


def _progress(percent: float, told: Progress | None) -> dict[str, Any]:
    """The board knows it before the store does."""
    if told is None:
        nothing = dict.fromkeys(("step", "total_steps", "epoch", "total_epochs"))
        return {"percent": percent, **nothing, "source": None, "phase": None, "step_at": None}
    known = percent if told.fraction is None else max(0.0, min(100.0, told.fraction * 100))
    return {
        "percent": round(known, 2),
        "step": told.step,
        "total_steps": told.total_steps,
        "epoch": told.epoch,
        "total_epochs": told.total_epochs,
        "source": told.source,
        "phase": told.phase,
        "step_at": iso(told.step_at),
    }


def _use(found: Use | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "at": iso(found.at),
        "cpu_cores": _rounded(found.cpu_cores),
        "cpu_cores_given": found.cpu_cores_given,
        "cpu_ratio": _rounded(found.cpu_ratio),
        "memory_gb": _rounded(found.memory_gb),
        "memory_gb_given": round(found.memory_gb_given, 3),
        "memory_ratio": _rounded(found.memory_ratio),
        "gpu_util": _rounded(found.gpu_util),
        "gpu_memory_percent": _rounded(found.gpu_memory_percent),
        "processes": found.processes,
    }


def _node(found: NodeNow) -> dict[str, Any]:
    own = {name: each for name, each in found.latest.items() if name.startswith("node.")}
    return {**node_answer(found.node), **_measured(own, "node.")}


def _gpu(gpu: GpuView, latest: Mapping[str, Sample]) -> dict[str, Any]:
    prefix = f"gpu.{gpu.index}."
    own = {name: each for name, each in latest.items() if name.startswith(prefix)}
    return {**asdict(gpu), **_measured(own, prefix)}


def _measured(latest: Mapping[str, Sample], prefix: str) -> dict[str, Any]:
    return {
        "at": iso(max((sample.at for sample in latest.values()), default=None)),
        "metrics": {
            name.removeprefix(prefix): metric_answers.number(round(sample.value, 3))
            for name, sample in sorted(latest.items())
        },
    }


def _latest(sample: Sample) -> dict[str, Any]:
    value = metric_answers.number(sample.value)
    return {"value": value, "step": sample.step, "at": iso(sample.at)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
