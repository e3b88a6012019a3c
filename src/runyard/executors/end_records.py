"""Records of journals about an end, as the port tells them."""

from __future__ import annotations

import pwd
from typing import Any

from runyard.executors.base import End


def process_words(found: dict[str, Any]) -> dict[str, Any]:
    """A process that does not die, in words for people."""
    uid = found.get("uid", -1)
    try:
        user = pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        user = str(uid)
    return {
        "pid": found.get("pid"),
        "name": found.get("comm"),
        "state": found.get("state"),
        "where": found.get("wchan"),
        "user": user,
    }


_DETAILS = (
    "errno",
    "path",
    "message",
    "limit_s",
    "owner",
    "limit_mb",
    "used_mb",
    "memory_peak_mb",
    "oom_kills",
    "forks_refused",
    "rank",
    "ranks",
    "port",
    "node",
    "refused",
)
_END_FIELDS = ("code", "signal", "cause", "by", "ended_at", "started_at")


def end_of(record: dict[str, Any]) -> End:
    return End(
        code=record.get("code"),
        signal=record.get("signal"),
        cause=str(record.get("cause", "unknown")),
        by=str(record.get("by", "unknown")),
        ended_at=float(record["ended_at"]),
        started_at=record.get("started_at"),
        detail=_detail(record),
        receipt=_receipt(record),
    )


def _detail(record: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in record.items() if name in _DETAILS}
    if record.get("cause") == "service_failed":
        found |= record.get("service_failure") or {}
    return found


def _receipt(record: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in record.items() if name not in _END_FIELDS}
    if found.get("was_stuck"):
        found["was_stuck"] = [process_words(process) for process in found["was_stuck"]]
    return found
