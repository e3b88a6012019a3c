"""Amounts as people type them (32GB, 2h, A100:2, 0-15%4), as numbers; Complaint says where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from runyard.cli.complaints import Complaint

_SECONDS_FIELDS = ("timeout_s", "grace_s", "lease_s")

T = TypeVar("T")


def seconds(text: str, where: str) -> float:
    from runyard.domain import quantities

    return _read(quantities.parse_duration, text, where)


def memory_gb(text: str, where: str) -> float:
    from runyard.domain import quantities

    return _read(quantities.parse_memory_gb, text, where)


def array(text: str, where: str) -> tuple[list[int], int]:
    """Indexes, and how many may run at once (0: all)."""
    from runyard.domain import arrays

    found = _read(arrays.parse_array, text, where)
    return list(found.indexes), found.limit


def gpus(text: str, where: str) -> tuple[str | None, float]:
    """(type or None, count) of 2, 0.5, A100, A100:2."""
    kind, _, count = text.strip().rpartition(":")
    try:
        number = float(count)
    except ValueError:
        if text[:1].isalpha() and not kind:
            return text, 1
        number = -1.0
    if not 0 <= number < float("inf"):
        raise Complaint(f"{where}: '{text}' is not a number of GPUs; write 2, 0.5 or A100:2.")
    return kind or None, int(number) if number == int(number) else number


def fields_as_numbers(job: dict[str, Any], where: str) -> dict[str, Any]:
    """A job file's amounts with units, as the API wants them: numbers."""
    for name in _SECONDS_FIELDS:
        if isinstance(job.get(name), str):
            job[name] = seconds(job[name], f"{where}: {name}")
    if isinstance(job.get("memory_gb"), str):
        job["memory_gb"] = memory_gb(job["memory_gb"], f"{where}: memory_gb")
    if isinstance(job.get("gpu_count"), str):
        kind, job["gpu_count"] = gpus(job["gpu_count"], f"{where}: gpu_count")
        if kind:
            job.setdefault("gpu_type", kind)
    return job


def _read(parse: Callable[[str], T], text: str, where: str) -> T:
    from runyard.domain import errors

    try:
        return parse(text)
    except errors.BadRequest as wrong:
        raise Complaint(f"{where}: {wrong.message}") from None
