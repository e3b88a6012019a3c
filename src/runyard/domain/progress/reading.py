"""Progress and metrics out of the log of an unmodified script, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from runyard.domain.progress import (
    deepspeed,
    epoch_loss,
    huggingface,
    json_lines,
    keras,
    lightning,
    megatron,
    nanogpt,
    phases,
    tqdm,
)
from runyard.domain.progress.course import Course, Place
from runyard.domain.progress.hints import Hints
from runyard.domain.progress.point import Point, Sighting
from runyard.domain.progress.written import clean

MOST_NAMES = 400

# Who is believed where two say the same. What a program reports itself stands above all.
REPORT = 5
TRUST = {
    json_lines.FAMILY: 4,
    huggingface.FAMILY: 3,
    lightning.FAMILY: 3,
    keras.FAMILY: 3,
    deepspeed.FAMILY: 3,
    megatron.FAMILY: 3,
    nanogpt.FAMILY: 3,
    epoch_loss.FAMILY: 2,
    tqdm.FAMILY: 1,
}
_PHASES = {"evaluation": phases.EVALUATING, "summary": phases.FINISHING}
# A small step back is a late line; a larger one that is said twice is a new beginning.
STEP_BACK = 0.02


def sight(line: str) -> Sighting | None:
    """What one line says, by the first family that knows it; the most particular come first."""
    text = clean(line)
    if not text:
        return None
    return (
        json_lines.read(text)
        or huggingface.read(text)
        or lightning.read(text, line)
        or keras.read(text)
        or tqdm.read(text, line)
        or deepspeed.read(text)
        or megatron.read(text)
        or nanogpt.read(text)
        or epoch_loss.read(text)
        or phases.read(text)
    )


class Reader:
    """Feed it the lines of one attempt in order, split at newlines and carriage returns."""

    def __init__(self, hints: Hints | None = None) -> None:
        self.phase: str | None = None  # what it does, where the newest line names that
        self._course = Course(hints or Hints())
        self._guide = 0  # trust in whoever says how far it is
        self._stepper = 0  # trust in whoever counts steps
        self._named: dict[str, int] = {}  # trust in whoever gives each value
        self._shown: dict[str, str] = {}  # the last values of bars
        self._step: int | None = None
        self._fraction: float | None = None
        self._lower = False
        self._fell = False
        self._bar_seen = False
        self._restarts = 0
        self._last: Point | None = None
        self._held: list[Point] = []  # waits for its step

    def feed(self, line: str, at: float) -> list[Point]:
        """The points that this line adds; most lines add none."""
        seen = sight(line)
        self.phase = None if seen is None else seen.phase or _PHASES.get(seen.kind)
        if seen is None or seen.kind in ("other", "pause"):
            return []
        if seen.kind in ("hint", "header"):
            place = self._course.note(seen)
            return self._added(seen, place, {}, at) if place is not None else []
        if seen.kind in ("evaluation", "summary"):
            return self._evaluated(seen, at)
        place = self._course.place(seen)
        if place is None:
            self.phase = phases.EVALUATING  # the bar of something else than the training
            return []
        points = self._added(seen, place, self._believed(seen), at)
        if seen.epochs_done is not None and self._bar_seen:
            return self._hold(points)
        self._bar_seen = self._bar_seen or seen.family == tqdm.FAMILY
        return self._release(place.step) + points

    def finish(self) -> list[Point]:
        """At the end of the log: what still waited."""
        return self._release(None)

    def note_reported(self, point: Point) -> None:
        """The program tells this by itself, so its log is no longer asked for it."""
        if point.fraction is not None:
            self._guide = REPORT
        if point.step is not None:
            self._stepper, self._step = REPORT, point.step
        for name in point.values:
            self._trust(name, REPORT)

    def _hold(self, points: list[Point]) -> list[Point]:
        """A log of the Trainer names a rounded epoch; its bar, drawn again at once, the step."""
        before = self._release(None)
        self._held = points
        return before

    def _release(self, step: int | None) -> list[Point]:
        held, self._held = self._held, []
        return [replace(point, step=self._step if step is None else step) for point in held]

    def _evaluated(self, seen: Sighting, at: float) -> list[Point]:
        values = self._believed(seen)
        if not values:
            return []
        step = seen.step
        if step is None and seen.epochs_done is not None:
            step = self._course.step_at(seen.epochs_done)
        step = self._step if step is None else step
        point = Point(at, seen.family, step=step, values=values, restarts=self._restarts)
        if seen.family == huggingface.FAMILY and seen.kind == "evaluation" and self._bar_seen:
            return self._hold([point])
        return [*self._release(None), point]

    def _added(
        self, seen: Sighting, place: Place, values: Mapping[str, float], at: float
    ) -> list[Point]:
        trust = self._weight(seen, place)
        if self._slips_back(place, trust):
            if seen.batches is not None or not values:
                return []
            return [Point(at, seen.family, values=values, restarts=self._restarts)]
        step = place.step if seen.epochs_done is not None else self._steps(place, trust)
        fraction = self._far(place, trust)
        point = Point(
            at,
            seen.family,
            step=step,
            epoch=place.epoch if self._may_name_epoch(seen, trust) else None,
            values=values,
            total_steps=place.total_steps if fraction is not None else None,
            total_epochs=place.total_epochs if fraction is not None else None,
            fraction=fraction,
            rate=None if seen.counts_epochs else seen.rate,
            eta_s=place.eta_s if fraction is not None else None,
            restarts=self._restarts,
        )
        if not point.tells_progress and not point.values:
            return []
        if self._is_repeated(point):
            return []
        self._last = point
        return [point]

    def _may_name_epoch(self, seen: Sighting, trust: int) -> bool:
        """The Trainer's epoch is exact, though its bar guides."""
        return trust >= self._guide or (seen.epochs_done is not None and self._guide < REPORT)

    def _is_repeated(self, point: Point) -> bool:
        """A bar is drawn again and again."""
        last = self._last
        return (
            last is not None
            and (last.source, last.step, last.epoch) == (point.source, point.step, point.epoch)
            and (last.fraction, last.restarts) == (point.fraction, point.restarts)
            and last.values == point.values
        )

    def _weight(self, seen: Sighting, place: Place) -> int:
        """Trust in what it says of progress."""
        if seen.family == huggingface.FAMILY:
            return 1  # its lines are rare; its bar is finer and as true
        if seen.family == tqdm.FAMILY and place.sure:
            return 2  # it stands on totals that other lines gave
        if seen.kind == "header":
            return 2
        return TRUST[seen.family]

    def _slips_back(self, place: Place, trust: int) -> bool:
        """A counter that falls once is a bar being cleared; one that stays low began again."""
        if place.step is None or self._step is None or trust != self._stepper:
            return False
        falls = place.step < self._step
        slips = falls and not self._fell
        self._fell = slips
        return slips

    def _steps(self, place: Place, trust: int) -> int | None:
        if place.step is None:
            return self._step if self._stepper > trust else None
        if trust < self._stepper:
            return self._step
        self._stepper, self._step = trust, place.step
        return place.step

    def _far(self, place: Place, trust: int) -> float | None:
        fraction = place.fraction
        if fraction is None or trust < self._guide:
            return None
        if trust > self._guide or place.begins_again or self._fraction is None:
            if place.begins_again:
                self._restarts += 1
            self._guide, self._fraction, self._lower = trust, fraction, False
            return fraction
        if fraction < self._fraction - STEP_BACK:
            if not self._lower:
                self._lower = True
                return self._fraction
            self._restarts += 1
            self._fraction = fraction
        self._lower = False
        self._fraction = max(fraction, self._fraction)
        return self._fraction

    def _believed(self, seen: Sighting) -> dict[str, float]:
        trust = TRUST[seen.family]
        if seen.batch is not None and seen.family in (tqdm.FAMILY, lightning.FAMILY):
            return self._changed(trust, seen.values)
        return {name: value for name, value in seen.values.items() if self._trust(name, trust)}

    def _changed(self, trust: int, values: Mapping[str, float]) -> dict[str, float]:
        """A bar goes on showing its last values while its counter runs."""
        fresh = {
            name: value
            for name, value in values.items()
            if self._trust(name, trust) and self._shown.get(name) != repr(value)
        }
        self._shown.update((name, repr(value)) for name, value in fresh.items())
        return fresh

    def _trust(self, name: str, trust: int) -> bool:
        known = self._named.get(name, 0)
        if trust < known or (not known and len(self._named) >= MOST_NAMES):
            return False
        self._named[name] = trust
        return True
