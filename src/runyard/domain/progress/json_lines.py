"""Objects with a step or an epoch and metrics, one per line, also behind the head of a logger."""

from __future__ import annotations

import json

from runyard.domain.progress import record
from runyard.domain.progress.point import Sighting

FAMILY = "json"

# Of loggers and of clocks; numbers, but no metrics.
_OWN = frozenset(
    [
        "time",
        "timestamp",
        "ts",
        "t",
        "at",
        "date",
        "level",
        "pid",
        "rank",
        "local_rank",
        "lineno",
        "line",
        "thread",
        "process",
        "job_id",
        "v",
        "relative_time",
        "elapsed",
        "elapsed_s",
        "wall",
        "wall_time",
    ]
)
_MARKS = ("loss", "acc", "reward", "lr", "learning_rate", "ppl", "perplexity", "error", "tokens")


def read(line: str) -> Sighting | None:
    start = line.find('{"')
    if start < 0 or not line.endswith("}") or start > 200:
        return None
    try:
        found = json.loads(line[start:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    seen = record.read(found, own=_OWN, number_texts=True)
    placed = seen.step is not None or seen.epoch is not None
    telling = any(mark in name for name in seen.values for mark in _MARKS)
    if not (placed and seen.values) and not telling:
        return None
    validation = bool(seen.values) and all(
        name.startswith(("val_", "test")) for name in seen.values
    )
    return Sighting(
        FAMILY,
        "evaluation" if validation else "train",
        step=seen.step,
        total_steps=seen.total_steps,
        epoch=seen.epoch,
        total_epochs=seen.total_epochs,
        values=seen.values,
    )
