"""How a server is asked for something: paths, queries, and the lists in its answers."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

BASE = "/api/v1/training"


def in_path(name: str | int) -> str:
    """An id or a name as one part of a path, whatever letters it has."""
    return quote(str(name), safe="")


def job_path(job_id: str | int) -> str:
    """Below the base."""
    return f"/jobs/{in_path(job_id)}"


def given(**values: Any) -> dict[str, Any]:
    """A query of those that say something."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value != [] and value != ""
    }


def rows(answer: Any) -> list[dict[str, Any]]:
    """The list in an answer: itself, or the one under the answer's only list key."""
    if isinstance(answer, dict):
        answer = next((value for value in answer.values() if isinstance(value, list)), [])
    return list(answer)
