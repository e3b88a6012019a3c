"""Whether a program that ran out of memory heeds RUNYARD_BATCH_SCALE."""

from __future__ import annotations

from runyard.domain.failures.categories import Category
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt
from runyard.domain.recovery import batch_scale_mark
from runyard.engine.end import end_files
from runyard.engine.launch import starts
from runyard.engine.parts import Parts
from runyard.logs.log_tail import lines_between
from runyard.stores.base import Reader

_HEAD_BYTES = 64 * 1024  # of the metrics file: the batch is made before the training begins
_TOLD = ("tried_bytes", "step")  # what a smaller batch would change


def is_heeded(parts: Parts, reader: Reader, attempt: Attempt, diagnosis: Diagnosis) -> bool:
    """It told so, or what it did with another scale differs."""
    if _is_marked(parts, attempt):
        return True
    attempts = reader.attempts(attempt.job_id)
    now = starts.ran_with(attempts, attempt.number).batch_scale
    for one in reversed(attempts):
        if one.number >= attempt.number or not one.diagnosis:
            continue
        if one.diagnosis["category"] != Category.GPU_OOM.value:
            continue
        if starts.ran_with(attempts, one.number).batch_scale != now:
            facts = one.diagnosis["facts"]
            return any(facts.get(name) != diagnosis.facts.get(name) for name in _TOLD)
    return False


def _is_marked(parts: Parts, attempt: Attempt) -> bool:
    """By its first rank, if it has several."""
    path = end_files.metrics_path(parts, attempt.attempt_id)
    return any(batch_scale_mark.is_mark(line) for line in lines_between(path, 0, _HEAD_BYTES))
