"""A training whose exit code is 0 and whose last loss was no number: it stays completed, for that
is what the program said, and everybody is told that it is worth nothing."""

from __future__ import annotations

import os
import re

from runyard.domain import reasons
from runyard.domain.failures import diagnosis as diagnoses
from runyard.domain.failures.categories import Category
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.alert import COMPLETED_WITH_NAN, AlertLevel, NewAlert
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptStatus
from runyard.engine.end import end_files
from runyard.engine.parts import Parts
from runyard.engine.watch import alerting
from runyard.stores.base import Transaction

_TAIL_BYTES = 16 * 1024
_BAD = re.compile(rb"\b(nan|inf|infinity|not finite|invalid loss)\b", re.IGNORECASE)
_ACTOR = "supervisor"


def may_have(parts: Parts, attempt_id: str) -> bool:
    """Whether a closer look is worth it; small reads, because every good end is asked."""
    logs = end_files.log_paths(parts, attempt_id)
    paths = (end_files.metrics_path(parts, attempt_id), *logs)
    return any(_BAD.search(_tail(path)) for path in paths)


def reason_of(diagnosis: Diagnosis | None) -> Reason | None:
    """Of a job that completed; None where nothing is wrong with it."""
    if diagnosis is None or diagnosis.category is not Category.NAN:
        return None
    told = {name: diagnosis.facts.get(name) for name in ("bad_step", "step")}
    return Reason(reasons.COMPLETED_WITH_NAN, told)


def note(
    tx: Transaction, job: Job, attempt: Attempt, diagnosis: Diagnosis, told: Reason, now: float
) -> None:
    """With the attempt, and as an alert that stays until a person closes it."""
    ended = frozenset({AttemptStatus.ENDED})
    tx.update_attempt(attempt.attempt_id, ended, diagnosis=diagnoses.as_mapping(diagnosis))
    alert = NewAlert(
        key=f"{attempt.attempt_id}:{COMPLETED_WITH_NAN}",
        level=AlertLevel.CRITICAL,
        code=COMPLETED_WITH_NAN,
        params=dict(told.params),
        job_id=job.id,
        attempt_id=attempt.attempt_id,
        node_id=attempt.node_id,
        evidence={} if diagnosis.root is None else {"line": diagnosis.root.text},
    )
    alerting.open_in(tx, alert, now, _ACTOR)


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES)
    except OSError:
        return b""
