"""How much of a job's time went into steps that count, and where the rest of it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

# So many times slower than usual, and so long, is a stall.
STALL_FACTOR = 10.0
STALL_S = 30.0

StepTime = tuple[float, int]


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """`steps` are some of the steps an attempt did, in order of time; `ended_at` is None while it
    runs."""

    started_at: float
    ended_at: float | None
    completed: bool = False
    steps: Sequence[StepTime] = ()


@dataclass(frozen=True, slots=True)
class Losses:
    """Seconds. `lost_steps` were done and had to be done again, or never counted; `recovery` is
    from the end of an attempt to the first step of the next."""

    queue: float = 0.0
    setup: float = 0.0
    lost_steps: float = 0.0
    recovery: float = 0.0
    stall: float = 0.0


@dataclass(frozen=True, slots=True)
class EffectiveTime:
    """With `losses`, `productive_s` adds up to `wall_s`. No steps known: no ratio."""

    ratio: float | None
    productive_s: float
    wall_s: float
    losses: Losses = field(default_factory=Losses)


def effective_time(
    submitted_at: float,
    attempts: Sequence[AttemptTimes],
    now: float,
    *,
    set_aside: Sequence[tuple[float, float]] = (),
) -> EffectiveTime:
    """`set_aside`: stretches in which nobody wanted it to run, between an end and a retry."""
    ran = list(attempts)
    end = now
    if ran and ran[-1].ended_at is not None:
        end = ran[-1].ended_at
    idle = sum(max(0.0, min(until, end) - max(since, submitted_at)) for since, until in set_aside)
    wall = max(0.0, end - submitted_at - idle)
    if not ran:
        return EffectiveTime(None, 0.0, wall, Losses(queue=wall))
    queue = min(wall, max(0.0, ran[0].started_at - submitted_at))
    setup = lost = stall = 0.0
    stepped = False
    for place, one in enumerate(ran):
        until = max(one.started_at, one.ended_at if one.ended_at is not None else now)
        steps = _rising(one.steps)
        if not steps:
            setup += until - one.started_at
            continue
        if not stepped:
            setup += min(until, max(one.started_at, steps[0][0])) - one.started_at
        stepped = True
        stall += _stalled(steps, until)
        lost += _lost(one, steps, until, ran[place + 1 :])
    recovery = _recovery(ran, idle)
    if not stepped:
        rest = max(0.0, wall - queue - setup)
        return EffectiveTime(None, 0.0, wall, Losses(queue=queue, setup=setup, recovery=rest))
    spent = queue + setup + lost + recovery + stall
    productive = max(0.0, wall - spent)
    losses = Losses(queue, setup, lost, recovery, stall)
    return EffectiveTime(min(1.0, productive / wall) if wall else None, productive, wall, losses)


def _rising(steps: Sequence[StepTime]) -> list[StepTime]:
    """Times that only rise: a clock may have been set."""
    kept: list[StepTime] = []
    for at, step in steps:
        if not kept or at >= kept[-1][0]:
            kept.append((at, step))
    return kept


def _stalled(steps: Sequence[StepTime], until: float) -> float:
    """What was waited beyond the usual pace, while a step took far too long."""
    gaps = [(b[0] - a[0], max(1, b[1] - a[1])) for a, b in pairwise(steps)]
    if len(gaps) < 3:
        return 0.0
    usual = median(seconds / count for seconds, count in gaps)
    gaps.append((until - steps[-1][0], 1))
    return sum(
        seconds - usual * count
        for seconds, count in gaps
        if seconds > STALL_S and seconds > STALL_FACTOR * usual * count
    )


def _lost(
    one: AttemptTimes, steps: Sequence[StepTime], until: float, later: Sequence[AttemptTimes]
) -> float:
    """Time from the first step that a later attempt did again; without a later one that stepped,
    nothing is lost yet."""
    again = [_rising(other.steps)[0][1] for other in later if other.steps]
    if not again or one.completed:
        return 0.0
    first = min(again)
    redone = [at for at, step in steps if step >= first]
    if redone:
        before = [at for at, step in steps if step < first]
        return max(0.0, until - (before[-1] if before else steps[0][0]))
    return max(0.0, until - steps[-1][0])


def _recovery(ran: Sequence[AttemptTimes], idle: float) -> float:
    total = 0.0
    for one, following in pairwise(ran):
        ended = one.ended_at if one.ended_at is not None else following.started_at
        steps = _rising(following.steps)
        ready = steps[0][0] if steps and one.steps else following.started_at
        total += max(0.0, ready - ended)
    return max(0.0, total - idle)
