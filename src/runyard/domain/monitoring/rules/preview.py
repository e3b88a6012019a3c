"""When a rule would have fired, on a history that is known already."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runyard.domain.monitoring.rules.evaluate import compile_expression
from runyard.domain.monitoring.rules.grammar import parse
from runyard.domain.monitoring.series import Sample, downsample

MOST_MOMENTS = 500
MOST_SAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Firing:
    """It held from `since` on and would have told at `at`; `until` is when it was over."""

    since: float
    at: float
    until: float | None


class Hold:
    """How long a condition holds without a break."""

    __slots__ = ("fired", "since")

    def __init__(self) -> None:
        self.since: float | None = None
        self.fired = False

    def note(self, holds: bool, at: float, for_s: float) -> bool:
        """Whether it has held for so long now; a clock that was set back begins again."""
        if not holds:
            self.since, self.fired = None, False
            return False
        if self.since is None or at < self.since:
            self.since = at
        self.fired = at - self.since >= for_s
        return self.fired


class PastFacts:
    """A history as it was known at `now`, which is moved along it."""

    def __init__(
        self, history: Mapping[str, Sequence[Sample]], words: Mapping[str, str] | None = None
    ) -> None:
        self.now = 0.0
        self._words = words or {}
        self._samples = {
            name: sorted(downsample(samples, MOST_SAMPLES), key=lambda sample: sample.at)
            for name, samples in history.items()
        }
        self._times = {name: [s.at for s in found] for name, found in self._samples.items()}

    def moments(self) -> list[float]:
        """At most `MOST_MOMENTS`, where something was measured, the last included."""
        every = sorted({at for times in self._times.values() for at in times})
        if len(every) <= MOST_MOMENTS:
            return every
        last = len(every) - 1
        return [every[last * number // (MOST_MOMENTS - 1)] for number in range(MOST_MOMENTS)]

    def latest(self, name: str) -> Sample | None:
        end = self._end(name)
        return self._samples[name][end - 1] if end else None

    def window(self, name: str, since: float) -> Sequence[Sample]:
        end = self._end(name)
        if not end:
            return ()
        return self._samples[name][bisect.bisect_left(self._times[name], since, 0, end) : end]

    def words(self, name: str) -> str | None:
        return self._words.get(name)

    def _end(self, name: str) -> int:
        return bisect.bisect_right(self._times.get(name, ()), self.now)


def preview(
    expression: str,
    for_s: float | None,
    history: Mapping[str, Sequence[Sample]],
    words: Mapping[str, str] | None = None,
) -> list[Firing]:
    """Times it would have fired; RuleError for a bad expression. `words` are taken as they would
    have been all the time, such as stage running."""
    parsed = parse(expression)
    holds = compile_expression(parsed)
    length = parsed.for_s if for_s is None else for_s
    facts, hold = PastFacts(history, words), Hold()
    found: list[Firing] = []
    for moment in facts.moments():
        facts.now = moment
        before = hold.fired
        fires = hold.note(holds(facts), moment, length)
        if fires and not before and hold.since is not None:
            found.append(Firing(hold.since, moment, None))
        elif before and not fires:
            found[-1] = Firing(found[-1].since, found[-1].at, moment)
    return found
