"""What earlier runs of a job used, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.cli import formatting, wording


def told(found: Mapping[str, Any] | None) -> str:
    """Empty where nothing is suggested."""
    if not found:
        return ""
    used = []
    if found.get("memory_gb"):
        used.append(wording.say("used_memory", value=found["memory_gb"]))
    if found.get("gpu_memory_mb"):
        used.append(wording.say("used_gpu_memory", value=found["gpu_memory_mb"]))
    if found.get("seconds"):
        used.append(wording.say("used_time", value=formatting.span(float(found["seconds"]))))
    return wording.say("suggestion", from_job=found.get("from_job"), used=", ".join(used))
