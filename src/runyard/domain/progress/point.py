"""What is known of a training at one moment, whoever said it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Point:
    """One reading. `epoch` counts epochs done, with fractions; `fraction` is of the whole
    training; `rate` is steps per second; `values` have canonical names."""

    at: float
    source: str
    step: int | None = None
    epoch: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    total_steps: int | None = None
    total_epochs: float | None = None
    fraction: float | None = None
    rate: float | None = None
    eta_s: float | None = None
    rank: int = 0
    restarts: int = 0  # how often progress has begun again from the start
    phase: str | None = None  # one of phases.py, where it is told

    @property
    def tells_progress(self) -> bool:
        return any(known is not None for known in (self.step, self.epoch, self.fraction))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A training said that it saved itself."""

    at: float
    path: str
    step: int | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one log line says by itself, before it is set beside the lines before it."""

    family: str
    # train, evaluation, summary (of all of it), header (an epoch begins), hint (a total),
    # pause (by its phase), other
    kind: str
    step: int | None = None
    total_steps: int | None = None
    batch: float | None = None  # within the epoch
    batches: float | None = None
    batches_are_steps: bool = True  # not so where samples are counted
    epoch: float | None = None  # the number as shown
    epoch_base: int | None = None  # 0 or 1, where the family is known to count from it
    epochs_done: float | None = None  # where the number means that
    total_epochs: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    rate: float | None = None
    eta_s: float | None = None
    key: str = ""  # tells bars apart
    inner: bool = False  # drawn below another bar
    counts_epochs: bool = False  # a bar whose unit is the epoch
    phase: str | None = None  # what is done meanwhile, where the line names it


@dataclass(frozen=True, slots=True)
class Stale:
    """A line that a rank of another attempt wrote: it tells nothing."""
