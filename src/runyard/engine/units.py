"""What runs under a supervisor of its own: an attempt, or the preparation of a job."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain.job import Attempt
from runyard.domain.preparation import Preparation

PREPARED_BY = "local"  # the executor that runs preparations


@dataclass(frozen=True, slots=True)
class Unit:
    name: str
    node_id: str
    executor: str


def unit_of(found: Attempt | Preparation) -> Unit:
    if isinstance(found, Attempt):
        return Unit(found.attempt_id, found.node_id, found.executor)
    return Unit(found.preparation_id, found.node_id, PREPARED_BY)
