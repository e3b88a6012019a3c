"""An object of names and numbers, as JSON lines and reports give it: what in it is progress, what
a metric, and what cannot be true."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.domain.progress.names import GOOD_NAME, canonical_values

MOST_VALUES = 400
LARGEST_COUNT = 1e15
LARGEST_EPOCH = 1e9

STEP_NAMES = ("step", "global_step", "iteration", "iter", "train_step", "num_updates", "update")
TOTAL_NAMES = ("total", "total_steps", "max_steps", "num_steps", "max_iters", "total_iters")
EPOCH_NAMES = ("epoch", "epochs_done", "current_epoch")
TOTAL_EPOCH_NAMES = ("total_epochs", "num_epochs", "max_epochs", "epochs", "num_train_epochs")
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class Record:
    step: int | None
    total_steps: int | None
    epoch: float | None
    total_epochs: float | None
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def fraction(self) -> float | None:
        """Of the whole; None where the numbers contradict each other."""
        if self.step is not None and self.total_steps:
            return min(1.0, self.step / self.total_steps)
        if self.epoch is not None and self.total_epochs:
            return min(1.0, self.epoch / self.total_epochs)
        return None


def read(fields: Mapping[str, Any], *, own: frozenset[str], number_texts: bool = False) -> Record:
    """`own` are names that are no metrics. With `number_texts`, "0.5" is a number too."""
    numbers: dict[str, float] = {}
    for name, given in _flat(fields, own):
        value = as_number(given, number_texts)
        if value is not None and len(numbers) < MOST_VALUES and GOOD_NAME.fullmatch(name):
            numbers[name] = value
    step = _take(numbers, STEP_NAMES, LARGEST_COUNT)
    total = _take(numbers, TOTAL_NAMES, LARGEST_COUNT)
    epoch = _take(numbers, EPOCH_NAMES, LARGEST_EPOCH)
    epochs = _take(numbers, TOTAL_EPOCH_NAMES, LARGEST_EPOCH)
    return Record(
        step=None if step is None else int(step),
        total_steps=int(total) if total and total >= 1 else None,
        epoch=epoch,
        total_epochs=epochs or None,
        values=canonical_values(numbers),
    )


def as_number(given: object, number_texts: bool = False) -> float | None:
    if isinstance(given, bool):
        return float(given)
    if isinstance(given, int | float):
        try:
            return float(given)
        except OverflowError:
            return math.inf if given > 0 else -math.inf
    if isinstance(given, str):
        if given in _WORDS:
            return _WORDS[given]
        if number_texts and 0 < len(given) <= 40:
            try:
                return float(given)
            except ValueError:
                return None
    return None


def _flat(fields: Mapping[str, Any], own: frozenset[str]) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from value.items()  # "values", "metrics", "data": one level is enough
        elif name not in own:
            yield name, value


def _take(numbers: dict[str, float], names: tuple[str, ...], largest: float) -> float | None:
    """The first of these names that holds something possible; all of them leave the metrics."""
    found = [numbers.pop(name) for name in names if name in numbers]
    return next((value for value in found if 0 <= value < largest), None)
