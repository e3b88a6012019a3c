"""Several bars at once: which is the training, which counts its epochs, which is inside it."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain.progress import tqdm
from runyard.domain.progress.point import Sighting

MOST_BARS = 64

Key = tuple[str, float]


@dataclass(slots=True)
class _Bar:
    done: float
    labelled: bool
    runs: int = 1
    has_loss: bool = False

    def proof(self) -> tuple[bool, bool]:
        return self.labelled, self.has_loss


class Bars:
    """Tells training bars from others, by their words, totals, and the order they begin in."""

    def __init__(self) -> None:
        self._bars: dict[Key, _Bar] = {}
        self._main: Key | None = None
        self._outer: Key | None = None  # counts epochs; the main bar runs inside it
        self._before = 0.0  # epochs before the run of the main bar inside the outer one
        self.switched = False

    def follow(self, seen: Sighting) -> bool:
        """Whether this bar says how far the training is."""
        self.switched = False
        if seen.batch is None or seen.batches is None:
            return False
        key = (seen.key, seen.batches)
        began = self._note(key, seen.batch, "loss" in seen.values)
        if seen.counts_epochs:
            self._outer = key
            return True
        if self._main is None:
            self._main = key
            began = True
        elif key != self._main:
            if key == self._outer:
                return True
            if not self._moves_to(key, seen.inner):
                return False
            began = True
        if began:
            self._count_run()
        return True

    @property
    def outer_total(self) -> float | None:
        """Epochs in all, where a bar counts them."""
        return None if self._outer is None else self._outer[1]

    def epochs_done(self, seen: Sighting) -> float:
        """By the bar that counts epochs, and the part of the one inside."""
        batch, batches = seen.batch or 0.0, seen.batches or 1.0
        if self._outer is not None and (seen.key, seen.batches) == self._outer:
            return batch
        return self._before + batch / batches

    def runs(self) -> int:
        """How often the training's bar began."""
        return self._bars[self._main].runs if self._main is not None else 0

    def _note(self, key: Key, done: float, has_loss: bool) -> bool:
        """Whether a new run of this bar begins."""
        bar = self._bars.get(key)
        if bar is None:
            if len(self._bars) >= MOST_BARS:
                kept = {self._main, self._outer}
                self._bars = {old: bar for old, bar in self._bars.items() if old in kept}
            bar = self._bars[key] = _Bar(done, tqdm.is_labelled_training(key[0]))
            bar.has_loss = has_loss
            return True
        began = done < bar.done
        bar.runs += began
        bar.done = done
        bar.has_loss = bar.has_loss or has_loss
        return began

    def _count_run(self) -> None:
        if self._outer is not None and self._main is not None:
            # The outer bar is drawn seldom, so runs inside it count as well.
            counted = self._bars[self._main].runs - 1.0
            self._before = max(self._bars[self._outer].done, min(counted, self._outer[1] - 1))

    def _moves_to(self, key: Key, inner: bool) -> bool:
        """A bar other than the main one: it may be inside it, follow it, or be better proof."""
        if self._main is None:
            return True
        bar, main = self._bars[key], self._bars[self._main]
        if self._outer is None and inner and bar.runs - 1 == main.done and not main.has_loss:
            self._outer, self._main = self._main, key  # one run of it for each step of the outer
            return True
        over = main.done >= self._main[1]
        equal = bar.proof() >= main.proof()
        larger = over and equal and key[1] > self._main[1]
        lasting = over and equal and bar.runs > main.runs and not inner
        if not (bar.proof() > main.proof() or larger or lasting):
            return False
        self.switched = True
        self._main = key
        return True
