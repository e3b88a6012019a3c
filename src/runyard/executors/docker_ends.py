"""The end of an attempt in a container: the supervisor's record and the container's, as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runyard.executors.base import End

# Causes that a person, a limit or a failed start gave: the container's own end adds its code only.
_DECIDED = frozenset(
    {
        "cancelled",
        "cancelled_before_start",
        "timeout",
        "service_failed",
        "never_started",
        "gpu_locked",
        "exec_failed",
        "start_failed",
        "cwd_missing",
        "lost_host_restart",
    }
)
KILLED = 128 + 9  # as an engine tells of SIGKILL


def merged(end: End, container: Mapping[str, Any], memory_mb: int | None) -> End:
    """`end` is that of the runner, which stood for the container."""
    cause, detail = _cause(end, container, memory_mb)
    receipt = {**end.receipt, "container": container.get("id"), "signals": _signals(container)}
    if not end.receipt.get("stuck"):
        receipt["proof"] = "container_removed"
    by_us = container.get("killed_at") is not None and container.get("code") == KILLED
    return replace(
        end,
        code=None if by_us else container.get("code"),
        signal=9 if by_us else None,
        cause=cause,
        detail={**end.detail, **detail},
        started_at=container.get("started_at"),
        ended_at=container.get("ended_at") or end.ended_at,
        receipt=receipt,
    )


def _cause(
    end: End, container: Mapping[str, Any], memory_mb: int | None
) -> tuple[str, Mapping[str, Any]]:
    told = str(container.get("cause") or "")
    if end.cause in _DECIDED:
        return end.cause, {}
    if told:
        return told, container.get("detail") or {}
    code = container.get("code")
    if container.get("oom_killed") and code != 0:
        limit = {"limit_mb": memory_mb} if memory_mb else {}
        return "oom" if code == KILLED else "oom_child", limit
    return ("supervisor_lost" if code is None else "exited"), {}


def _signals(container: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the container was sent; the runner's own does not matter to anybody."""
    sent = (("TERM", container.get("asked_at")), ("KILL", container.get("killed_at")))
    return [
        {"signal": name, "at": at, "target": "container"} for name, at in sent if at is not None
    ]
