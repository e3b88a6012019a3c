"""When a training will be done, with a range, from how fast it went lately."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_SAMPLES = 512
FEWEST_INTERVALS = 3
PARTS = 16  # the window is cut into so many parts of equal progress
LONGEST_S = 10 * 365 * 86_400.0
# So many times longer than usual is a pause. A few are set aside; many are how it runs.
PAUSE_FACTOR = 10.0
FEW_PAUSES = 2
LEAST_SPREAD = 0.05  # no forecast is surer than this

Sample = tuple[float, float]  # (time, progress in any unit)


@dataclass(frozen=True, slots=True)
class Eta:
    seconds: float
    low: float
    high: float
    at: float
    basis: str


def eta(
    samples: Iterable[Sample], now: float, *, end: float = 1.0, basis: str = "fraction"
) -> Eta | None:
    """Time from `now` until progress reaches `end`; None while too little is known.

    Only differences count, so a run that resumed at step 5,000 is judged by what it did itself.
    """
    window = _steady(samples, end)
    if len(window) <= FEWEST_INTERVALS:
        return None
    last_time, last = window[-1]
    left = end - last
    if left <= 0:
        return Eta(0.0, 0.0, 0.0, now, basis)
    pace, fast, slow = _paces(window)
    since = now - last_time
    usual = pace * (last - window[0][1]) / (len(window) - 1)
    # While the next sample is not overdue, the time since the last one is already part of it.
    gone = since if 0 <= since <= max(5 * usual, 1.0) else 0.0
    seconds, low, high = (max(0.0, left * each - gone) for each in (pace, fast, slow))
    if not math.isfinite(seconds) or seconds > LONGEST_S:
        return None
    if since > max(5 * usual, 1.0):
        high += since  # it pauses, and may for as long again
    return Eta(seconds, low, min(high, LONGEST_S), now + seconds, basis)


def _steady(samples: Iterable[Sample], end: float) -> list[Sample]:
    """The newest stretch in which time and progress only rise, one sample per progress."""
    kept: list[Sample] = []
    for time, progress in samples:
        if not (math.isfinite(time) and math.isfinite(progress)):
            continue
        progress = min(progress, end)
        if kept and (time < kept[-1][0] or progress < kept[-1][1]):
            kept = []  # the clock jumped back, or the training began again
        if kept and (progress == kept[-1][1] or time == kept[-1][0]):
            if time == kept[-1][0]:
                kept[-1] = (time, progress)
            continue
        kept.append((time, progress))
        if len(kept) > 2 * MOST_SAMPLES:
            kept = kept[-MOST_SAMPLES:]
    return kept[-MOST_SAMPLES:]


def _paces(window: Sequence[Sample]) -> tuple[float, float, float]:
    """Seconds per unit of progress: as a whole, when it goes well, when it does not."""
    steps = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(window)]
    steps = _without_rare_pauses(steps)
    spent, gained = sum(time for time, _ in steps), sum(gain for _, gain in steps)
    pace = spent / gained
    parts = sorted(_parts(steps, gained))
    fast, slow = _quantile(parts, 0.25), _quantile(parts, 0.75)
    return (
        pace,
        min(fast, pace * (1 - LEAST_SPREAD)),
        max(slow, pace * (1 + LEAST_SPREAD)),
    )


def _without_rare_pauses(steps: list[Sample]) -> list[Sample]:
    paces = sorted(time / gain for time, gain in steps)
    limit = PAUSE_FACTOR * _quantile(paces, 0.5)
    pauses = [step for step in steps if step[0] / step[1] > limit]
    if not pauses or len(pauses) > FEW_PAUSES or len(steps) - len(pauses) < FEWEST_INTERVALS:
        return steps
    return [step for step in steps if step[0] / step[1] <= limit]


def _parts(steps: Sequence[Sample], gained: float) -> list[float]:
    """Seconds per unit in stretches of about equal progress."""
    paces, time, gain = [], 0.0, 0.0
    for spent, got in steps:
        time, gain = time + spent, gain + got
        if gain >= gained / PARTS:
            paces.append(time / gain)
            time = gain = 0.0
    return paces or [sum(spent for spent, _ in steps) / gained]


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
