"""A GPU that reports errors (Xid, uncorrected ECC) or runs slower because it is hot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runyard.domain.failures import xid
from runyard.domain.failures.categories import Category
from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt
from runyard.domain.monitoring.robust import finite, span
from runyard.domain.monitoring.series import Sample

CODE = "gpu_trouble"
HOT_FOR_S = 120.0
HOT_SHARE = 0.8
TOO_HOT = 95.0  # degrees Celsius


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """What was measured of one GPU; each may be empty."""

    index: int
    xid: Sequence[Sample] = ()  # error numbers, 0 without one
    ecc_errors: Sequence[Sample] = ()  # uncorrected ones, counted
    throttled: Sequence[Sample] = ()  # 1 while heat or power slow it down
    temperature: Sequence[Sample] = ()


def find(gpu: GpuSeries) -> Finding | None:
    """The worst of what there is."""
    return _xid(gpu) or _ecc(gpu) or _hot(gpu)


def _xid(gpu: GpuSeries) -> Finding | None:
    """What only follows another error, or a kill, is told of neither alone nor in its place."""
    number = xid.worth_telling(int(sample.value) for sample in finite(gpu.xid))
    if number is None:
        return None
    hardware = xid.meaning(number) is Category.GPU_HW
    level = AlertLevel.CRITICAL if hardware else AlertLevel.WARNING
    return _finding(gpu, level, "xid", {"xid": number}, gpu.xid)


def _ecc(gpu: GpuSeries) -> Finding | None:
    known = finite(gpu.ecc_errors)
    if not known:
        return None
    new = known[-1].value - min(sample.value for sample in known)
    if new <= 0:
        return None
    return _finding(gpu, AlertLevel.ERROR, "ecc", {"errors": int(new)}, gpu.ecc_errors)


def _hot(gpu: GpuSeries) -> Finding | None:
    degrees = gpu.temperature[-1].value if gpu.temperature else None
    params = {"temperature": degrees}
    if degrees is not None and degrees >= TOO_HOT:
        return _finding(gpu, AlertLevel.ERROR, "too_hot", params, gpu.temperature)
    known = finite(gpu.throttled)
    recent = [sample for sample in known if sample.at >= known[-1].at - HOT_FOR_S]
    if len(recent) < 3 or span(recent) < 0.5 * HOT_FOR_S:
        return None
    if sum(sample.value > 0 for sample in recent) < HOT_SHARE * len(recent):
        return None
    return _finding(gpu, AlertLevel.WARNING, "throttled", params, gpu.throttled)


def _finding(
    gpu: GpuSeries,
    level: AlertLevel,
    kind: str,
    params: Mapping[str, object],
    proof: Sequence[Sample],
) -> Finding:
    return Finding(CODE, level, {"gpu": gpu.index, "kind": kind, **params}, excerpt(proof))
