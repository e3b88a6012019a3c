"""A checkpoint as the registry knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runyard.domain.reasons import Reason


class CheckpointVerdict(StrEnum):
    UNKNOWN = "unknown"  # not checked yet, or of a format that cannot be
    GOOD = "good"
    BAD = "bad"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """`attempt` is the number of the attempt that saved it; `why` says what is wrong with one
    that is not good. Its path is unique within its job."""

    job_id: int
    attempt: int
    path: str
    family: str
    size_bytes: int
    saved_at: float
    step: int | None = None
    verdict: CheckpointVerdict = CheckpointVerdict.UNKNOWN
    why: Reason | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reported: bool = False  # told by the program itself, not found by its name
    checked_at: float | None = None
    id: int = 0  # given by the store
