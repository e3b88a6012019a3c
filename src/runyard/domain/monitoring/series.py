"""Series of metric values: one sample, a window of the newest, and fewer points to draw."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NO_STEP = -1
_LARGEST_STEP = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Sample:
    """A value at a moment. `value` may be NaN or infinite; a step is never negative."""

    name: str
    at: float  # epoch seconds
    value: float
    step: int | None = None


class Window:
    """The newest samples of one series, packed: a server keeps thousands of these."""

    __slots__ = ("_at", "_slack", "_steps", "_values", "name", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = max(1, size)
        self._slack = max(32, self.size // 4)  # trimmed in lumps, which costs less than a ring
        self._at = array("d")
        self._values = array("d")
        self._steps = array("q")

    def __len__(self) -> int:
        return min(len(self._at), self.size)

    def append(self, sample: Sample) -> None:
        step = sample.step
        self._at.append(sample.at)
        self._values.append(sample.value)
        known = step is not None and 0 <= step <= _LARGEST_STEP
        self._steps.append(step if step is not None and known else _NO_STEP)
        if len(self._at) >= self.size + self._slack:
            for column in (self._at, self._values, self._steps):
                del column[: len(column) - self.size]

    def extend(self, samples: Iterable[Sample]) -> None:
        for sample in samples:
            self.append(sample)

    def values(self) -> list[float]:
        """Oldest first."""
        return list(self._values[-self.size :])

    def samples(self) -> list[Sample]:
        """Oldest first, in the order they came."""
        return [self._sample(place) for place in self._places()]

    def since(self, at: float) -> list[Sample]:
        """Those of this moment or later. Clocks jump, so each is looked at."""
        return [self._sample(place) for place in self._places() if self._at[place] >= at]

    def last(self) -> Sample | None:
        return self._sample(len(self._at) - 1) if self._at else None

    def _places(self) -> range:
        return range(max(0, len(self._at) - self.size), len(self._at))

    def _sample(self, place: int) -> Sample:
        step = self._steps[place]
        known = None if step == _NO_STEP else step
        return Sample(self.name, self._at[place], self._values[place], known)


def downsample(samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most `most` of them in the same order: the first, the last, and of each stretch between
    the lowest, the highest and the first NaN. An average would hide the spike looked for."""
    if most <= 0:
        return []
    if len(samples) <= most:
        return list(samples)
    if most == 1:
        return [samples[-1]]
    inner, room = len(samples) - 2, most - 2
    has_nan = any(sample.value != sample.value for sample in samples)
    stretches = room // (3 if has_nan else 2)
    kept = {0, len(samples) - 1}
    if stretches == 0 and room:
        kept.update(_extremes(samples, 1, len(samples) - 1)[:room])
    for number in range(stretches):
        first = 1 + inner * number // stretches
        kept.update(_extremes(samples, first, 1 + inner * (number + 1) // stretches))
    return [samples[place] for place in sorted(kept)]


def _extremes(samples: Sequence[Sample], first: int, end: int) -> list[int]:
    """Places of the first NaN, the highest and the lowest, as far as there are such."""
    nan = high = low = -1
    for place in range(first, end):
        value = samples[place].value
        if value != value:
            nan = place if nan < 0 else nan
            continue
        if high < 0 or value > samples[high].value:
            high = place
        if low < 0 or value < samples[low].value:
            low = place
    return [place for place in (nan, high, low) if place >= 0]
