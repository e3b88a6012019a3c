"""What people are told about a trouble: one open alert for each, however often it is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class AlertLevel(StrEnum):
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class AlertStatus(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"  # a person has seen it; it is still so
    CLOSED = "closed"


# Codes of the alerts about ends that do not come
CANNOT_BE_KILLED = "cannot_be_killed"  # params: processes [{pid, name, state, where, user}]
CANCEL_STALE = "cancel_stale"  # params: seconds, by, holders [{pid, name, state, where, user}]
GPU_MEMORY_HELD = "gpu_memory_held"  # params: gpus [{index, uuid, used_mb, holders}]

SERVICE_UNHEALTHY = "service_unhealthy"  # params: service, said: it does not answer any more

COMPLETED_WITH_NAN = (
    "completed_with_nan"  # params: bad_step, step: exit code 0, but the loss is NaN
)

# These are over once the job has ended.
OF_AN_END = (CANNOT_BE_KILLED, CANCEL_STALE, GPU_MEMORY_HELD)


@dataclass(frozen=True, slots=True)
class NewAlert:
    """A trouble as found now. The same `key` while an alert is not closed is the same alert."""

    key: str
    level: AlertLevel
    code: str
    params: Mapping[str, Any] = field(default_factory=dict)
    job_id: int | None = None
    attempt_id: str | None = None
    node_id: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    actions_taken: tuple[Mapping[str, Any], ...] = ()  # added to those taken before


@dataclass(frozen=True, slots=True)
class Alert:
    id: int
    key: str
    level: AlertLevel
    code: str
    params: Mapping[str, Any]
    job_id: int | None
    job_ref: str | None
    attempt_id: str | None
    node_id: str | None
    status: AlertStatus
    times: int  # how often it was found
    opened_at: float
    seen_at: float  # when it was last found
    closed_at: float | None
    acknowledged_by: str | None
    evidence: Mapping[str, Any]
    actions_taken: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Empty fields match everything."""

    statuses: tuple[AlertStatus, ...] = ()
    levels: tuple[AlertLevel, ...] = ()
    codes: tuple[str, ...] = ()
    job_id: int | None = None


@dataclass(frozen=True, slots=True)
class AlertPage:
    alerts: tuple[Alert, ...]  # newest first
    next_cursor: str | None
    total: int
