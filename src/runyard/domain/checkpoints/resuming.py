"""Which checkpoint the next attempt goes on from."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.recovery.step import Resume, ResumeRule

NOT_CHECKED = "format_not_checked"  # nothing wrong with it, but its format proves nothing
_LEAST_OF_USUAL = 0.9  # a save that was cut short is smaller than the others


def newest_first(records: Sequence[CheckpointRecord]) -> list[CheckpointRecord]:
    """By when they were saved: after going back, what came later has smaller steps."""
    return sorted(records, key=lambda one: (one.saved_at, one.step or 0, one.id), reverse=True)


def usable(records: Sequence[CheckpointRecord]) -> list[CheckpointRecord]:
    """Those one may go on from, newest first. Where a program reports its checkpoints, only what
    it reported; of formats that prove nothing, what is about as large as the others."""
    told = [one for one in records if one.reported] or list(records)
    good = [one for one in told if one.verdict is CheckpointVerdict.GOOD]
    return newest_first(good or _plausible(told))


def untainted(
    records: Sequence[CheckpointRecord], attempt: int, resume: Resume
) -> list[CheckpointRecord]:
    """Without what the plan after that attempt went back from: its training was spoiled then."""
    if resume.rule is not ResumeRule.BEFORE_STEP or resume.step is None:
        return list(records)
    return [
        one
        for one in records
        if one.attempt > attempt or (one.step is not None and one.step < resume.step)
    ]


def choose(
    records: Sequence[CheckpointRecord], resume: Resume | None = None
) -> list[CheckpointRecord]:
    """In the order they should be tried; empty to begin anew."""
    wanted = resume or Resume()
    if wanted.rule is ResumeRule.NONE:
        return []
    found = [one for one in usable(records) if one.path not in wanted.excluding]
    if wanted.rule is ResumeRule.BEFORE_STEP and wanted.step is not None:
        found = [one for one in found if one.step is not None and one.step < wanted.step]
    return found[wanted.back :]


def passed_over(
    records: Sequence[CheckpointRecord], chosen: CheckpointRecord
) -> list[CheckpointRecord]:
    """Newer ones that were not taken because they are not whole, newest first."""
    bad = [one for one in records if one.verdict is CheckpointVerdict.BAD]
    return newest_first([one for one in bad if one.saved_at >= chosen.saved_at])


def _plausible(records: Sequence[CheckpointRecord]) -> list[CheckpointRecord]:
    unproven = [
        one
        for one in records
        if one.verdict is CheckpointVerdict.UNKNOWN
        and one.why is not None
        and one.why.code == NOT_CHECKED
    ]
    if not unproven:
        return []
    usual = median(one.size_bytes for one in unproven)
    return [one for one in unproven if one.size_bytes >= _LEAST_OF_USUAL * usual]
