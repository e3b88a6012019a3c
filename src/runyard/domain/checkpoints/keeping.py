"""Which checkpoints may be removed."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.checkpoints.resuming import newest_first

ALWAYS_KEPT = 2  # good ones, whatever a person asks for


def superfluous(
    records: Sequence[CheckpointRecord], keep: int, running: int = 0
) -> list[CheckpointRecord]:
    """Good ones beyond the newest `keep`, and bad ones older than all that are kept. What cannot
    be proven good or bad is never removed, nor is anything of an earlier attempt until the
    `running` one has saved two good ones: it may be reading it."""
    good = newest_first([one for one in records if one.verdict is CheckpointVerdict.GOOD])
    kept = good[: max(keep, ALWAYS_KEPT)]
    if len(kept) < ALWAYS_KEPT:
        return []
    oldest = kept[-1].saved_at
    spoiled = [
        one for one in records if one.verdict is CheckpointVerdict.BAD and one.saved_at < oldest
    ]
    own = sum(one.attempt >= running for one in kept[:ALWAYS_KEPT])
    return [
        one
        for one in (*good[len(kept) :], *spoiled)
        if one.attempt >= running or own == ALWAYS_KEPT
    ]
