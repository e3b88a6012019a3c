"""What an attempt has told so far, by report, log and event files: its samples, and how far it is.

A program's own report is believed before its log. Of log and event files, whoever gives a metric
first keeps giving it, so that no point is there twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from runyard.domain.monitoring.series import Sample
from runyard.domain.progress import estimate, names, phases
from runyard.domain.progress.hints import Hints
from runyard.domain.progress.point import Point
from runyard.domain.progress.reported import SOURCE as REPORT

EVENT_FILES = "tensorboard"
MOST_NAMES = 2000
MOST_RANKS = 64  # so many ranks have series of their own
_SELDOM_S = 1.0  # between two points of a value that is drawn many times a second
_WAY = 256  # newest places that time left is judged by
_WAY_APART_S = 0.25
_APART_S = 1e-6  # what tells two values of one step apart

_VALIDATION_RUNS = frozenset({"validation", "valid", "val", "eval", "evaluation"})


class AttemptAccount:
    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._giver: dict[str, str] = {}  # metric -> report, log, tensorboard
        self._last: dict[str, tuple[int | None, float]] = {}  # metric -> step and time
        self._run_of: dict[str, str] = {}  # tag -> the first folder that had it
        self._way: deque[estimate.Sample] = deque(maxlen=_WAY)
        self._way_restarts = 0
        self.fraction: float | None = None
        self.furthest = 0.0
        self.step: int | None = None
        self.total_steps: int | None = hints.total_steps
        self.epoch: float | None = None
        self.total_epochs: float | None = hints.total_epochs
        self.source = ""
        self.phase: str | None = None
        self.step_at: float | None = None
        self.at = 0.0
        self.refused = 0  # values for which there was no room or no place

    # what it is told

    def take_report(self, point: Point) -> list[Sample]:
        if point.rank:
            return self._of_other_rank(point)
        self._note_progress(point, self._reported_fraction(point))
        return self._samples(point, REPORT)

    def take_log(self, points: Iterable[Point], phase: str | None = None) -> list[Sample]:
        """`phase` is what the line named that gave these, which is after them."""
        found: list[Sample] = []
        for point in points:
            self._note_progress(point, point.fraction)
            found += self._samples(point, "log")
        self.phase = phase or self.phase
        return found

    def take_events(self, samples: Iterable[Sample], run: str = "") -> list[Sample]:
        """`run` is the folder of the file: in another one the same tag means something else."""
        found: list[Sample] = []
        for sample in samples:
            name = names.canonical(self._named_by_run(sample.name, run))
            if names.GOOD_NAME.fullmatch(name) and self._gives(name, EVENT_FILES):
                found.append(self._sample(name, sample.at, sample.value, sample.step))
            if sample.step is not None and self.source in ("", EVENT_FILES):
                self._note_event_step(sample.step, sample.at)
        return found

    def _named_by_run(self, tag: str, run: str) -> str:
        leaf = run.rpartition("/")[2]
        if leaf.lower() in _VALIDATION_RUNS or self._run_of.setdefault(tag, run) != run:
            return f"{leaf}/{tag}"
        return tag

    def eta(self, now: float) -> estimate.Eta | None:
        basis = "steps" if self.total_steps and self.step is not None else "epochs"
        return estimate.eta(self._way, now, basis=basis)

    # how it is weighed

    def _note_progress(self, point: Point, fraction: float | None) -> None:
        self.at = max(self.at, point.at)
        if point.tells_progress:
            self._note_place(point, fraction)
        elif point.values and all(name.startswith("val_") for name in point.values):
            self.phase = phases.EVALUATING
        if point.phase is not None:
            self.phase = point.phase

    def _note_place(self, point: Point, fraction: float | None) -> None:
        if self.source == REPORT and point.source != REPORT:
            return
        self.source = point.source
        if point.total_steps is not None:
            self.total_steps = point.total_steps
        if point.total_epochs is not None:
            self.total_epochs = point.total_epochs
        if point.epoch is not None:
            self.epoch = point.epoch
        if point.step is not None:
            self._note_step(point.step, point.at)
        if fraction is not None:
            self._note_fraction(fraction, point.at, point.restarts)

    def _note_step(self, step: int, at: float) -> None:
        if step != self.step:
            self.step, self.step_at = step, at
            self.phase = phases.TRAINING

    def _note_fraction(self, fraction: float, at: float, restarts: int) -> None:
        if restarts != self._way_restarts:
            self._way.clear()
            self._way_restarts = restarts
        if self.step is None and fraction != self.fraction:
            self.step_at = at
            self.phase = phases.TRAINING
        self.fraction = fraction
        self.furthest = max(self.furthest, fraction)
        way = self._way
        if len(way) > 1 and 0 <= at - way[-2][0] < _WAY_APART_S:
            way[-1] = (at, fraction)
        else:
            way.append((at, fraction))

    def _note_event_step(self, step: int, at: float) -> None:
        self.source = EVENT_FILES
        self.at = max(self.at, at)
        if self.step is None or step > self.step:
            self._note_step(step, at)
            if self.total_steps:
                self._note_fraction(min(1.0, step / self.total_steps), at, self._way_restarts)

    def _reported_fraction(self, point: Point) -> float | None:
        """Totals need to be told once only, or never where the command names them."""
        if point.fraction is not None:
            return point.fraction
        if point.step is not None and self.total_steps:
            return min(1.0, point.step / self.total_steps)
        if point.epoch is not None and self.total_epochs:
            return min(1.0, point.epoch / self.total_epochs)
        return None

    # samples

    def _samples(self, point: Point, giver: str) -> list[Sample]:
        found = [
            self._sample(name, point.at, value, point.step)
            for name, value in point.values.items()
            if self._gives(name, giver)
        ]
        for name, seldom in (("epoch", point.epoch), ("steps_per_sec", point.rate)):
            if seldom is not None and name not in point.values and self._gives(name, giver):
                last = self._last.get(name)
                if last is None or not 0 <= point.at - last[1] < _SELDOM_S:
                    found.append(self._sample(name, point.at, seldom, point.step))
        return found

    def _of_other_rank(self, point: Point) -> list[Sample]:
        if point.rank >= MOST_RANKS:
            self.refused += len(point.values)
            return []
        return [
            self._sample(f"{name}.rank{point.rank}", point.at, value, point.step)
            for name, value in point.values.items()
            if self._gives(f"{name}.rank{point.rank}", REPORT)
        ]

    def _gives(self, name: str, giver: str) -> bool:
        known = self._giver.get(name)
        if known is None:
            if len(self._giver) >= MOST_NAMES:
                self.refused += 1
                return False
        elif known != giver and giver != REPORT:
            return False
        self._giver[name] = giver
        return True

    def _sample(self, name: str, at: float, value: float, step: int | None) -> Sample:
        last = self._last.get(name)
        if last is not None and last[0] == step and 0 <= last[1] - at < 1:
            at = last[1] + _APART_S
        self._last[name] = (step, at)
        return Sample(name, at, value, step)
