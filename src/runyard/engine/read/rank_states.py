"""The ranks of a distributed attempt as they are now, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.domain.job import Attempt, Job
from runyard.domain.states import AttemptStatus
from runyard.engine.parts import Parts


def of_attempt(parts: Parts, job: Job, attempt: Attempt) -> list[dict[str, Any]]:
    """Rank, state (starting, running, ended; None where only another server knows it), pid, and
    how it ended. None of those that torchrun starts: only it knows them."""
    shape = job.spec.distributed
    if shape is None or shape.launcher == "torchrun":
        return []
    if attempt.status is AttemptStatus.ENDED:
        return of_ended(attempt)
    known = {one["rank"]: one for one in _known(parts, attempt)}
    here = attempt.node_id == parts.node_id
    return [
        {
            "rank": rank,
            "state": "starting" if here else None,
            "pid": None,
            "exit_code": None,
            "signal": None,
            "ended_at": None,
            **known.get(rank, {}),
        }
        for rank in range(shape.world_size)
    ]


def of_ended(attempt: Attempt) -> list[dict[str, Any]]:
    """As its end record tells them."""
    return [
        {
            "rank": one["rank"],
            "state": "ended",
            "pid": None,
            "exit_code": one["code"],
            "signal": one["signal"],
            "ended_at": one["ended_at"],
        }
        for one in (attempt.receipt or {}).get("ranks") or ()
    ]


def _known(parts: Parts, attempt: Attempt) -> Sequence[dict[str, Any]]:
    executor = parts.executors.get(attempt.executor)
    if executor is None or attempt.node_id != parts.node_id:
        return []
    return executor.ranks(attempt.attempt_id)
