"""From what a person asked for to a request: units, fair-share defaults, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from runyard.domain import errors
from runyard.domain.distributed import Distributed
from runyard.domain.job import Wanted
from runyard.domain.resources import (
    MAX_CPU_MILLI,
    MAX_GPU_MILLI,
    MAX_MEMORY_MB,
    Capacity,
    Request,
)

MB_PER_GB = 1024
DEFAULT_CPU_MILLI = 4 * 1000
DEFAULT_MEMORY_MB = 16 * MB_PER_GB
MAX_PORTS = 1000


def request_for(wanted: Wanted, capacity: Capacity, max_concurrent: int) -> Request:
    """The request for what was asked, with defaults clamped to a fair share of `capacity`.

    What a person asked for is never clamped; InvalidJob names every field that makes no sense.
    """
    problems: list[dict[str, Any]] = []
    cpu = _amount(problems, "cpu_cores", wanted.cpu_cores, 1000, MAX_CPU_MILLI)
    memory = _amount(problems, "memory_gb", wanted.memory_gb, MB_PER_GB, MAX_MEMORY_MB)
    gpu = _amount(problems, "gpu_count", wanted.gpu_count, 1000, MAX_GPU_MILLI)
    if gpu is not None and gpu > 1000 and gpu % 1000:
        problems.append(
            _problem("gpu_count", "not_whole", "must be a whole number, or a fraction below 1")
        )
    if isinstance(wanted.port_count, bool) or not 0 <= wanted.port_count <= MAX_PORTS:
        problems.append(_problem("ports", "out_of_range", f"must be between 0 and {MAX_PORTS}"))
    if problems:
        names = ", ".join(problem["field"] for problem in problems)
        raise errors.InvalidJob(f"The job is not valid: {names}.", fields=problems)
    gpu_type = (wanted.gpu_type or "").strip() or None
    share = fair_share(capacity, max_concurrent)
    if gpu is None:
        gpu = 1000 if gpu_type is not None else share.gpu_milli
    return Request(
        cpu_milli=share.cpu_milli if cpu is None else cpu,
        memory_mb=share.memory_mb if memory is None else memory,
        gpu_milli=gpu,
        gpu_type=gpu_type if gpu else None,
        port_count=wanted.port_count,
    )


def for_ranks(wanted: Wanted, shape: Distributed | None, capacity: Capacity) -> Wanted:
    """A distributed job that does not say how many GPUs gets one for every rank of a node, as far
    as there are so many."""
    if shape is None or wanted.gpu_count is not None or not capacity.gpus:
        return wanted
    return replace(wanted, gpu_count=min(shape.procs_per_node, len(capacity.gpus)))


def fair_share(capacity: Capacity, max_concurrent: int) -> Request:
    """What a job gets that asked for nothing: so much that `max_concurrent` of them fit."""
    jobs = max(1, max_concurrent)
    return Request(
        cpu_milli=max(1, min(DEFAULT_CPU_MILLI, capacity.cpu_milli // jobs)),
        memory_mb=max(1, min(DEFAULT_MEMORY_MB, capacity.memory_mb // jobs)),
        gpu_milli=1000 if capacity.gpus else 0,
    )


def _amount(
    problems: list[dict[str, Any]], field: str, value: float | None, unit: int, most: int
) -> int | None:
    """Whole small units, rounded up so that a tiny wish is not a wish for nothing."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        problems.append(_problem(field, "not_a_number", "must be a number"))
    elif value < 0:
        problems.append(_problem(field, "negative", "must not be negative"))
    elif value > most / unit:
        problems.append(_problem(field, "too_large", f"must be at most {most // unit}"))
    else:
        return math.ceil(round(value * unit, 3))
    return None


def _problem(field: str, code: str, message: str) -> dict[str, Any]:
    return {"field": field, "code": code, "message": message}
