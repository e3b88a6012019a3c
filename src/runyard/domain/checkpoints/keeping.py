"""Which checkpoints may be removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.checkpoints.resuming import newest_first
from runyard.domain.monitoring import main_metric

_HELD_OUT = ("eval_loss", "val_loss", "eval_accuracy", "val_accuracy", "eval_perplexity")
ALWAYS_KEPT = 2  # good ones, whatever a person asks for


def superfluous(
    records: Sequence[CheckpointRecord],
    keep: int,
    running: int = 0,
    in_use: Collection[str] = (),
) -> list[CheckpointRecord]:
    """Good ones beyond the newest `keep`, and bad ones older than all that are kept. What cannot
    be proven good or bad is never removed, nor the best by what was told of it, nor those of the
    paths `in_use`, nor anything of an earlier attempt until the `running` one has saved two good
    ones: it may be reading it."""
    good = newest_first([one for one in records if one.verdict is CheckpointVerdict.GOOD])
    kept = good[: max(keep, ALWAYS_KEPT)]
    if len(kept) < ALWAYS_KEPT:
        return []
    oldest = kept[-1].saved_at
    spoiled = [
        one for one in records if one.verdict is CheckpointVerdict.BAD and one.saved_at < oldest
    ]
    spared = {*in_use, *(one.path for one in (best(good),) if one is not None)}
    own = sum(one.attempt >= running for one in kept[:ALWAYS_KEPT])
    return [
        one
        for one in (*good[len(kept) :], *spoiled)
        if one.path not in spared and (one.attempt >= running or own == ALWAYS_KEPT)
    ]


def best(records: Sequence[CheckpointRecord]) -> CheckpointRecord | None:
    """By the metric that was told with them: of held-out data before that of training; the newest
    of equals. None where nothing was told."""
    names = {name for one in records for name in one.metrics}
    metric = next((name for name in _HELD_OUT if name in names), None) or main_metric.choose(names)
    if metric is None:
        return None
    told = {id(one): _number(one.metrics.get(metric)) for one in records}
    way = main_metric.direction(metric)
    value = main_metric.best((number for number in told.values() if number is not None), way)
    alike = [one for one in records if value is not None and told[id(one)] == value]
    return newest_first(alike)[0] if alike else None


def _number(value: Any) -> float | None:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if real else None
