"""Amounts as people type them (32GB, 2h, A100:2, 0-15%4), as numbers."""

from __future__ import annotations

import re
from typing import Any

from runyard.cli.complaints import Complaint

_SPANS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_MEMORY_GB = {"": 1.0, "K": 1 / 1024**2, "M": 1 / 1024, "G": 1.0, "T": 1024.0}
_SPAN_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|[smhdw])", re.IGNORECASE)
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d{1,2})(?::(\d{1,2}))?")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)
_MOST_ELEMENTS = 100_000
_SECONDS_FIELDS = ("timeout_s", "grace_s", "lease_s")


def seconds(text: str, where: str) -> float:
    """90, 90s, 15m, 1h30m, 2h, 1d, and Slurm's D-HH:MM:SS, HH:MM:SS."""
    word = text.strip()
    clock = _CLOCK.fullmatch(word)
    if clock:
        days, first, second, third = (int(part) if part else None for part in clock.groups())
        # As in Slurm: two parts are minutes and seconds, after days hours and minutes.
        whole = (first or 0, second or 0, third or 0)
        if third is None and days is None:
            whole = (0, first or 0, second or 0)
        return float((days or 0) * 86400 + whole[0] * 3600 + whole[1] * 60 + whole[2])
    if re.fullmatch(r"\d+(\.\d+)?", word):
        return float(word)
    parts = _SPAN_PART.findall(word)
    if parts and not _SPAN_PART.sub("", word).strip():
        return sum(float(count) * _SPANS[unit.lower()] for count, unit in parts)
    raise Complaint(f"{where}: {text!r} is no span of time; 90s, 15m, 2h, 1d or 1-12:00:00 are.")


def memory_gb(text: str, where: str) -> float:
    """32GB, 32G, 32GiB, 512MB, 32 (GB). Units are powers of 1024, as in memory_gb."""
    found = _MEMORY.fullmatch(text.strip())
    if not found:
        raise Complaint(f"{where}: {text!r} is no amount of memory; 32GB and 512MB are.")
    return float(found[1]) * _MEMORY_GB[found[2].upper()]


def gpus(text: str, where: str) -> tuple[str | None, float]:
    """(type or None, count) of 2, 0.5, A100, A100:2."""
    kind, _, count = text.strip().rpartition(":")
    try:
        return kind or None, _whole(float(count))
    except ValueError:
        if text and not kind and not text[0].isdigit() and text[0] not in "-.":
            return text, 1
    raise Complaint(f"{where}: {text!r} is no number of GPUs; 2, 0.5 and A100:2 are.")


def array(text: str, where: str) -> tuple[list[int], int]:
    """Indexes and how many may run at once (0: all) of 0-15%4, 1,3,7, 0-100:10."""
    body, percent, most = text.strip().partition("%")
    try:
        limit = int(most) if percent else 0
        indexes = [index for part in body.split(",") for index in _indexes(part)]
    except ValueError:
        raise Complaint(
            f"{where}: {text!r} is no array; 0-15%4, 0-100:10 and 1,3,7 are."
        ) from None
    if limit < 0 or (percent and limit == 0):
        raise Complaint(f"{where}: at least one job of an array must be allowed to run.")
    if len(indexes) > _MOST_ELEMENTS:
        raise Complaint(f"{where}: an array has at most {_MOST_ELEMENTS} jobs.")
    return sorted(set(indexes)), limit


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


def _whole(count: float) -> float:
    return int(count) if count == int(count) else count


def _indexes(part: str) -> range:
    span, _, step = part.strip().partition(":")
    first, dash, last = span.partition("-")
    begin = int(first)
    end = int(last) if dash else begin
    stride = int(step) if step else 1
    if begin < 0 or end < begin or stride < 1 or end - begin > _MOST_ELEMENTS * stride:
        raise ValueError(part)
    return range(begin, end + 1, stride)
