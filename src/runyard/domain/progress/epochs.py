"""Which epoch a training is in, from numbers that count from 0 or from 1 and totals that mean the
number of epochs or the number of the last."""

from __future__ import annotations

from runyard.domain.progress.point import Sighting

# So many lines of one epoch without a position inside it: they are not the epoch's last lines.
MANY_LINES = 3


class EpochCount:
    """Remembers what the lines so far showed."""

    def __init__(self, total_epochs: float | None) -> None:
        self.total = total_epochs
        self.known = False  # whether a line named an epoch
        self.begun = 0.0  # epochs before the one that runs
        self._base: int | None = None
        self._last_is_total = False
        self._shown: float | None = None
        self._lines = 0
        self._many = False

    def note(self, seen: Sighting) -> None:
        if seen.epoch_base is not None:
            self._base = seen.epoch_base
        if seen.epoch == 0 and self._base is None:
            self._base = 0
        if seen.total_epochs:
            self._note_total(seen, seen.total_epochs)
        if seen.epoch is not None:
            self.known = True
            self.begun = max(0.0, seen.epoch - self._first())
            self._lines = self._lines + 1 if seen.epoch == self._shown else 1
            self._shown = seen.epoch

    def inside(self, part: float) -> float:
        """Epochs done, with a part of the one that runs."""
        return self.begun + min(1.0, max(0.0, part))

    def after_line(self) -> float:
        """Epochs done after a line of metrics without a position: mostly the end of its epoch."""
        self._many = self._many or self._lines >= MANY_LINES
        if self._many:
            return self.begun
        self.begun += 1  # an unnumbered bar that follows belongs to the next
        return self.begun

    def _note_total(self, seen: Sighting, total: float) -> None:
        # From 0, `Epoch 0/24` by itself runs to 24/24; lines with metrics mostly end one before.
        if self._first() == 0 and seen.epoch_base is None and seen.epoch is not None:
            if seen.kind == "header" or seen.epoch >= total:
                self._last_is_total = True
            total += self._last_is_total
        self.total = total

    def _first(self) -> int:
        return 1 if self._base is None else self._base
