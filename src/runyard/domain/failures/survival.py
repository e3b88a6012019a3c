"""Which errors training survived: it went on after them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runyard.domain.failures.categories import Category
from runyard.domain.failures.log_text import Text
from runyard.domain.failures.observation import Observation
from runyard.domain.failures.signatures import divergence
from runyard.domain.progress.reading import sight

STEPS_THAT_PROVE = 3  # of training after an error: it was survived


class Survival:
    """Until which line of a log an error was survived: training went on after it. A loss that is
    no number is survived when it is one again; that training does not notice is no comfort."""

    def __init__(self, lines: Sequence[Text]) -> None:
        self._lines = lines
        self._steps: dict[int | None, int] = {}
        self._loss: int | None = None

    def survived(self, one: Observation) -> bool:
        if one.variant == divergence.METRIC_LINE:
            if self._loss is None:
                self._loss = self._last_finite_loss()
            return one.order < self._loss
        if one.category is Category.NAN:
            return False
        rank = one.text.rank
        if rank not in self._steps:
            self._steps[rank] = self._last_steps(rank)
        return one.order < self._steps[rank]

    def trained_between(self, one: Observation, later: Observation) -> bool:
        """At least a step was made between them, by the rank that says it."""
        lines = self._lines[one.order + 1 : later.order]
        return any(_trains(text) for text in lines if text.rank == one.text.rank)

    def _last_steps(self, rank: int | None) -> int:
        places = set()
        for order in range(len(self._lines) - 1, -1, -1):
            text = self._lines[order]
            if rank is not None and text.rank != rank:
                continue
            seen = sight(text.body)
            if seen is None or seen.kind != "train":
                continue
            place = (seen.step, seen.batch, seen.epoch)
            if place != (None, None, None):
                places.add(place)
            if len(places) >= STEPS_THAT_PROVE:
                return order
        return -1

    def _last_finite_loss(self) -> int:
        for order in range(len(self._lines) - 1, -1, -1):
            if "oss" not in self._lines[order].body:
                continue
            seen = sight(self._lines[order].body)
            loss = None if seen is None else seen.values.get("loss")
            if loss is not None and math.isfinite(loss):
                return order
        return -1


def _trains(text: Text) -> bool:
    seen = sight(text.body)
    return seen is not None and seen.kind == "train"
