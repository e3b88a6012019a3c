"""Which GPUs a waiting job should not get again, as the plan of its last failure says."""

from __future__ import annotations

from runyard.domain.job import Attempt
from runyard.domain.recovery.policy import Strategy
from runyard.stores.base import Reader, WaitingJob

NOTHING: tuple[frozenset[str], float | None] = (frozenset(), None)


def of(reader: Reader, head: WaitingJob, patience_s: float) -> tuple[frozenset[str], float | None]:
    """The GPUs, and until when; None: for good. Only a suspicion is given up after a while: the
    same GPU is better than none."""
    if head.attempt_number == 0:
        return NOTHING
    failed = next(
        (
            attempt
            for attempt in reversed(reader.attempts(head.job_id))
            if attempt.created_at >= head.queued_at and (attempt.plan or {}).get("avoid")
        ),
        None,
    )
    return NOTHING if failed is None else _planned(failed, patience_s)


def _planned(failed: Attempt, patience_s: float) -> tuple[frozenset[str], float | None]:
    plan = failed.plan or {}
    if plan["strategy"] == Strategy.OTHER_GPUS_FENCED.value:
        return frozenset(plan["avoid"]), None
    ended = failed.ended_at or failed.created_at
    return frozenset(plan["avoid"]), ended + plan["delay_s"] + patience_s
