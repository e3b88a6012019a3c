"""Jobs as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.cli import formatting, wording

HEADINGS = ("ID", "NAME", "STATUS", "WHY", "RESOURCES", "PROGRESS", "AGE", "OWNER")
ELASTIC = (1, 3)


def rows(jobs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [row(job) for job in jobs]


def row(job: Mapping[str, Any]) -> list[str]:
    return [
        str(job.get("job_id")),
        formatting.clean(str(job.get("name") or "")),
        wording.status(str(job.get("status"))),
        why(job) or "-",
        formatting.resources(job),
        progress(job),
        formatting.age(job.get("submitted_at")),
        str(job.get("owner") or "-"),
    ]


def progress(job: Mapping[str, Any]) -> str:
    percent = float(job.get("progress") or 0)
    running = job.get("status") in ("running", "completed") or percent > 0
    return formatting.bar(percent) if running else "-"


def why(job: Mapping[str, Any]) -> str:
    """The reason in words; for a completed job there is none to give."""
    if job.get("status") == "completed":
        return ""
    told = wording.reason(job.get("reason") or job.get("wait"))
    if (
        not told
        and job.get("status") in ("scheduled", "running")
        and job.get("stage") != "running"
    ):
        return str(job.get("stage") or "")
    return told
