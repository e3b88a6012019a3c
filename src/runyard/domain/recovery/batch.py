"""A smaller micro-batch with more accumulation, so that the effective batch stays."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain.job import JobSpec
from runyard.domain.recovery import command_flags, knobs
from runyard.domain.recovery.adjustments import Adjustments, Change
from runyard.domain.recovery.command_flags import Role
from runyard.domain.recovery.knobs import Knob

# Programs that take the first also take the second, which is 1 when it is not given.
_GOES_WITH = {"per_device_train_batch_size": "gradient_accumulation_steps"}
_GLOBAL_BESIDE_MICRO = frozenset({"train_batch_size", "batch_size"})
SMALLEST_SCALE = 1 / 1024
LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Smaller:
    adjustments: Adjustments
    changes: tuple[Change, ...]
    before: int
    after: int
    accumulation: int | None  # None: not ours to say
    effective_kept: bool


def smaller(spec: JobSpec, adjustments: Adjustments) -> Smaller | None:
    """About half of it; None when the job names no batch size above 1. `spec` is the job with
    `adjustments` applied."""
    knob = knobs.find(spec, Role.BATCH)
    size = None if knob is None else knob.whole
    if knob is None or size is None or not 1 < size <= LARGEST:
        return None
    accumulation = knobs.find(spec, Role.ACCUMULATION)
    times = None if accumulation is None else accumulation.whole
    if accumulation is not None and times is not None and times >= 1:
        after, accumulated = split(size, times)
        change = accumulation.turned(like(accumulation.value, accumulated))
        return _made(adjustments, knob, after, accumulated, (change,), kept=True)
    name = command_flags.normal(knob.name)
    partner = _partner(knob, name) if accumulation is None else None
    if partner is not None and partner not in adjustments.refused:
        after, accumulated = split(size, 1)
        change = Change("flag", partner, None, str(accumulated))
        behind = adjustments.with_inserted(change, knob.name)
        return _made(behind, knob, after, accumulated, (change,), kept=True)
    return _made(adjustments, knob, size // 2, None, (), kept=_follows(spec, name))


def split(size: int, times: int) -> tuple[int, int]:
    """The largest micro-batch of at most half the size that keeps `size` x `times`."""
    whole = size * times
    half = size // 2
    after = next(number for number in range(half, 0, -1) if whole % number == 0)
    return after, whole // after


def scaled(adjustments: Adjustments) -> tuple[Adjustments, Change] | None:
    """Half of what a program that asks for RUNYARD_BATCH_SCALE was told before."""
    before = adjustments.batch_scale
    if before <= SMALLEST_SCALE:
        return None
    change = Change("batch_scale", "RUNYARD_BATCH_SCALE", before, before / 2)
    return adjustments.with_change(change), change


def like(old: object, new: int | float) -> object:
    """A number written as the one it replaces: a word of a command, or a number."""
    if not isinstance(old, str):
        return new
    return f"{new:g}" if isinstance(new, float) else str(new)


def _made(
    adjustments: Adjustments,
    knob: Knob,
    after: int,
    accumulation: int | None,
    more: tuple[Change, ...],
    *,
    kept: bool,
) -> Smaller:
    changes = (knob.turned(like(knob.value, after)), *more)
    for change in changes:
        adjustments = adjustments.with_change(change)
    return Smaller(adjustments, changes, int(str(knob.value)), after, accumulation, kept)


def _partner(knob: Knob, name: str) -> str | None:
    """The flag for accumulation, written as the one for the batch size is."""
    if knob.kind != "flag" or not knob.name.startswith("--") or name not in _GOES_WITH:
        return None
    partner = _GOES_WITH[name]
    dashed = "-" in knob.name.lstrip("-")
    head = knob.name[: len(knob.name) - len(name)]
    return head + (partner.replace("_", "-") if dashed else partner)


def _follows(spec: JobSpec, name: str) -> bool:
    """Whether the program works accumulation out from a global batch size by itself."""
    if knobs.find(spec, Role.GLOBAL_BATCH) is not None:
        return True
    if "micro" not in name:
        return False
    given = {flag.name for flag in command_flags.flags(spec.command)}
    given |= {command_flags.normal(key) for key in spec.params}
    return bool(given & _GLOBAL_BESIDE_MICRO)
