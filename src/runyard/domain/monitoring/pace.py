"""When steps came: noted as they are seen, by a clock that nobody sets."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence

from runyard.domain.progress.phases import PAUSES

RECENT_GAPS = 50


class Pace:
    """Of one attempt. Times are of a monotonic clock; `began` is when it was first looked at."""

    def __init__(self, began: float, size: int = RECENT_GAPS) -> None:
        self.began = began
        self.step: float | None = None  # or epochs, or a part of the whole
        self.seen_at: float | None = None  # when the newest step was seen
        self.phase: str | None = None
        self._gaps: deque[float] = deque(maxlen=size)
        self._pauses: deque[float] = deque(maxlen=size)
        self._paused = False  # since the last step it evaluated or saved

    def note(self, step: float | None, phase: str | None, now: float) -> float | None:
        """What is known now; the steps per second since the last new step, if there is one. A
        smaller step is a new one as well: an epoch or a phase began again."""
        self.phase = phase
        self._paused = self._paused or phase in PAUSES
        if step is None or step == self.step:
            return None
        before, seen_at = self.step, self.seen_at
        self.step, self.seen_at = step, now
        if before is None or seen_at is None or now <= seen_at:
            self._paused = False
            return None
        (self._pauses if self._paused else self._gaps).append(now - seen_at)
        self._paused = phase in PAUSES
        return (step - before) / (now - seen_at) if step > before else None

    @property
    def gaps(self) -> Sequence[float]:
        """Seconds between moments at which new steps were seen, newest last."""
        return tuple(self._gaps)

    @property
    def pauses(self) -> Sequence[float]:
        """The same where it evaluated or saved in between."""
        return tuple(self._pauses)

    @property
    def usual_gap(self) -> float | None:
        return statistics.median(self._gaps) if self._gaps else None
