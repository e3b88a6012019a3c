"""Where a line puts the training on its whole course, with what the lines before it said."""

from __future__ import annotations

from dataclasses import dataclass, replace

from runyard.domain.progress import huggingface, keras, lightning, tqdm
from runyard.domain.progress.bars import Bars
from runyard.domain.progress.epochs import EpochCount
from runyard.domain.progress.hints import Hints
from runyard.domain.progress.point import Sighting


@dataclass(frozen=True, slots=True)
class Place:
    """`sure` is false for a bar that may be only one of many."""

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: float | None = None
    fraction: float | None = None
    eta_s: float | None = None
    sure: bool = True
    begins_again: bool = False


class Course:
    def __init__(self, hints: Hints) -> None:
        self._epochs = EpochCount(hints.total_epochs)
        self._bars = Bars()
        self._total_steps = hints.total_steps
        self._whole_bars = False  # bars run over all epochs, not over one
        self._named_by_bars = False
        self._fit_batches: float | None = None
        self._fit_over = True  # no epoch of Keras runs

    def note(self, seen: Sighting) -> Place | None:
        """A line that names a total, or says that an epoch begins."""
        self._named_by_bars = False
        self._epochs.note(seen)
        if seen.total_steps is not None:
            self._total_steps = seen.total_steps
        if seen.family == huggingface.FAMILY:
            self._whole_bars = True
        if seen.kind != "header":
            return None
        self._fit_batches, self._fit_over = None, False
        return self._by_epochs(self._epochs.begun)

    def place(self, seen: Sighting) -> Place | None:
        """None for a line that is not about the training, such as the bar of a validation."""
        if seen.family == keras.FAMILY:
            return self._place_fit(seen)
        if seen.family in (tqdm.FAMILY, lightning.FAMILY) and seen.batch is not None:
            return self._place_bar(seen)
        if seen.epochs_done is not None:
            self._whole_bars = True
            placed = self._by_epochs(seen.epochs_done)
            return replace(placed, step=self.step_at(seen.epochs_done))
        if seen.epoch is not None:
            return self._place_epoch_line(seen)
        return self._by_steps(seen.step, seen.total_steps)

    def step_at(self, epochs_done: float) -> int | None:
        """The step of a line that names only its epoch."""
        if self._total_steps and self._epochs.total:
            return round(epochs_done / self._epochs.total * self._total_steps)
        return None

    def _place_fit(self, seen: Sighting) -> Place | None:
        """A bar of Keras below its `Epoch 3/10`; others are of evaluate and predict."""
        if self._fit_batches is None:
            self._fit_batches = seen.batches
        if self._fit_over or seen.batch is None or seen.batches != self._fit_batches:
            return None
        if seen.batches is None:
            return self._by_epochs(self._epochs.begun)
        self._fit_over = seen.batch >= seen.batches
        return self._within_epoch(seen.batch, seen.batches, steps=True)

    def _place_bar(self, seen: Sighting) -> Place | None:
        if not self._bars.follow(seen) or seen.batch is None or seen.batches is None:
            return None
        switched = self._bars.switched
        if seen.epoch is not None:
            self._named_by_bars = True
            self._epochs.note(seen)
            return self._within_epoch(seen.batch, seen.batches, steps=True)
        if self._bars.outer_total is not None:
            return self._in_outer_bar(seen)
        if self._whole_bars or seen.batches == self._total_steps:
            return self._whole(seen, sure=True, begins_again=switched)
        if self._epochs.known and not self._named_by_bars:
            return self._within_epoch(seen.batch, seen.batches, steps=True)
        before = self._bars.runs() - 1
        if before or self._epochs.total:
            self._epochs.begun = float(before)
            return self._within_epoch(seen.batch, seen.batches, steps=True)
        return self._whole(seen, sure=False, begins_again=switched)

    def _in_outer_bar(self, seen: Sighting) -> Place:
        total, done = self._bars.outer_total, self._bars.epochs_done(seen)
        fraction = _share(done, total)
        if seen.counts_epochs or seen.batches is None or total is None:
            return Place(epoch=done, total_epochs=total, fraction=fraction)
        return Place(
            step=round(done * seen.batches),
            total_steps=round(total * seen.batches),
            epoch=done,
            total_epochs=total,
            fraction=fraction,
        )

    def _place_epoch_line(self, seen: Sighting) -> Place:
        self._named_by_bars = False
        self._epochs.note(seen)
        if seen.total_steps is not None and seen.step is not None:
            placed = self._by_steps(seen.step, seen.total_steps)
            return Place(
                placed.step, placed.total_steps, self._epochs.begun, self._epochs.total,
                placed.fraction,
            )  # fmt: skip
        if seen.batch is not None and seen.batches:
            return self._within_epoch(seen.batch, seen.batches, steps=seen.batches_are_steps)
        if seen.step is not None:
            by_steps = self._by_steps(seen.step, None)
            by_epochs = self._by_epochs(self._exact(seen) or self._epochs.begun)
            return Place(
                seen.step, by_steps.total_steps, by_epochs.epoch, by_epochs.total_epochs,
                by_steps.fraction if by_steps.fraction is not None else by_epochs.fraction,
            )  # fmt: skip
        return self._by_epochs(self._exact(seen) or self._epochs.after_line())

    def _exact(self, seen: Sighting) -> float | None:
        """An epoch with a fraction counts what is done."""
        return seen.epoch if seen.epoch is not None and seen.epoch % 1 else None

    def _within_epoch(self, batch: float, batches: float, *, steps: bool) -> Place:
        done, total = self._epochs.inside(batch / batches), self._epochs.total
        if not steps:
            return self._by_epochs(done)
        return Place(
            step=round(self._epochs.begun * batches + min(batch, batches)),
            total_steps=round(total * batches) if total else None,
            epoch=done,
            total_epochs=total,
            fraction=_share(done, total),
        )

    def _by_epochs(self, done: float) -> Place:
        total = self._epochs.total
        return Place(epoch=done, total_epochs=total, fraction=_share(done, total))

    def _by_steps(self, step: int | None, total: int | None) -> Place:
        total = total or self._total_steps
        if step is None:
            return Place()
        return Place(step=step, total_steps=total, fraction=_share(step, total))

    def _whole(self, seen: Sighting, *, sure: bool, begins_again: bool) -> Place:
        step, total = int(seen.batch or 0), int(seen.batches or 0)
        return Place(
            step=step,
            total_steps=total or None,
            fraction=_share(step, total),
            eta_s=seen.eta_s,
            sure=sure,
            begins_again=begins_again,
        )


def _share(done: float, total: float | None) -> float | None:
    return min(1.0, max(0.0, done / total)) if total else None
