"""Ports of machines that an attempt could not use, left alone for a while.

In memory only: whoever forgets them tries them again and hears of it again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from runyard.domain import ending
from runyard.domain.failures.categories import Category
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt
from runyard.executors.base import End

AVOID_S = 300.0


class RefusedPorts:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[tuple[str, int], float] = {}  # (machine, port)

    def note(
        self, attempt: Attempt, end: End, diagnosis: Diagnosis | None, now: float
    ) -> list[tuple[str, int]]:
        """What an end tells of ports; those (machine, port) that are avoided because of it."""
        if end.cause == ending.PORT_TAKEN:
            found = _refused(attempt, end.detail)
        elif diagnosis is not None and diagnosis.category is Category.PORT_IN_USE:
            found = _named(attempt, diagnosis.facts.get("port"))
        else:
            return []
        with self._lock:
            self._until.update(dict.fromkeys(found, now + AVOID_S))
        return found

    def of(self, machine_id: str, now: float) -> frozenset[int]:
        with self._lock:
            self._until = {one: until for one, until in self._until.items() if until > now}
            return frozenset(port for machine, port in self._until if machine == machine_id)


def _refused(attempt: Attempt, detail: Mapping[str, Any]) -> list[tuple[str, int]]:
    machines = {part.index: part.machine_id for part in attempt.slices}
    return [
        (machines.get(one["slice"], attempt.machine_id), int(one["port"]))
        for one in detail.get("refused", ())
    ]


def _named(attempt: Attempt, named: Any) -> list[tuple[str, int]]:
    """A port that the log says is in use, if it is one that was granted."""
    parts = [(part.machine_id, part.ports) for part in attempt.slices]
    granted = parts or [(attempt.machine_id, attempt.ports)]
    return [
        (machine, port) for machine, ports in granted for port in ports if str(port) == str(named)
    ]
