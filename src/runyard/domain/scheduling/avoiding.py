"""GPUs that one job should not get again: one of them may be what made its last attempt fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runyard.domain import reasons
from runyard.domain.reasons import Reason
from runyard.domain.resources import Gpu
from runyard.domain.scheduling.view import MachineView, ShapeView, WaitingJobView
from runyard.domain.scheduling.wait_reasons import lasting_reason, runs_on

_OF_GPUS = (reasons.GPUS_HELD_ELSEWHERE, reasons.NOT_ENOUGH_NODES)


def elsewhere(
    shape: ShapeView, job: WaitingJobView, machines: Sequence[MachineView], now: float
) -> list[MachineView] | None:
    """The machines without what the job avoids. None when it may have any GPU: it avoids none, has
    waited long enough for another, or there is no other that it could ever get."""
    if not job.avoid or not shape.request.gpu_milli:
        return None
    if job.avoid_until is not None and now >= job.avoid_until:
        return None
    left = [_without(machine, job.avoid) for machine in machines]
    if not left or lasting_reason(shape, left) is not None:
        return None
    return [machine for machine in left if runs_on(shape, machine)]


def told(reason: Reason, job: WaitingJobView, machines: Sequence[MachineView]) -> Reason:
    """Why it waits: for other GPUs, where that is what it lacks."""
    lacks_gpus = reason.code in _OF_GPUS or reason.params.get("resource") == "gpu"
    if not job.avoid or not lacks_gpus:
        return reason
    avoided = [gpu for machine in machines for gpu in machine.capacity.gpus if _is_out(gpu, job)]
    if not avoided:
        return reason
    params = {"gpus": sorted({gpu.index for gpu in avoided}), "until": job.avoid_until}
    fenced = sorted({gpu.index for gpu in avoided if gpu.fenced})
    return Reason(reasons.GPUS_AVOIDED, {**params, "fenced": fenced})


def _is_out(gpu: Gpu, job: WaitingJobView) -> bool:
    return gpu.uuid in job.avoid


def _without(machine: MachineView, avoid: frozenset[str]) -> MachineView:
    """What is fenced is no other one to wait for either."""
    gpus = tuple(gpu for gpu in machine.capacity.gpus if gpu.uuid not in avoid and not gpu.fenced)
    return replace(machine, capacity=replace(machine.capacity, gpus=gpus))
