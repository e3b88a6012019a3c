"""A series as a terminal shows it: the curve, its axes, and the figures that matter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.cli import formatting, plot, tables, wording

_OF_THE_SYSTEM = ("system.", "gpu.")
_FIRST = ("loss", "val_loss", "accuracy", "val_accuracy", "learning_rate", "grad_norm")
MOST_PLOTS = 6


@dataclass(slots=True)
class Series:
    steps: list[int | None] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    sampled: bool = False

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Series:
        values = [float(value) for value in found["values"]]
        sampled = bool(found.get("sampled"))
        return cls(list(found["steps"]), list(found["times"]), values, sampled)

    def add(self, found: Mapping[str, Any], most: int) -> list[tuple[int | None, float, float]]:
        """Points that came later, of which those not known yet are taken and returned; of all, at
        most so many are kept."""
        known = {(step, round(at * 1000)) for step, at in zip(self.steps, self.times, strict=True)}
        rows = zip(found["steps"], found["times"], map(float, found["values"]), strict=True)
        new = [row for row in rows if (row[0], round(row[1] * 1000)) not in known]
        for step, at, value in new:
            self.steps.append(step)
            self.times.append(at)
            self.values.append(value)
        for column in (self.steps, self.times, self.values):
            del column[: max(0, len(column) - most)]
        return new


def chosen(names: list[str], wanted: list[str]) -> list[str]:
    """Those asked for that are there; without a wish the ones that tell most."""
    if wanted:
        from runyard.domain.progress.names import canonical

        asked = [name if name in names else canonical(name) for name in wanted]
        return [name for name in dict.fromkeys(asked) if name in names]
    own = [name for name in names if not name.startswith(_OF_THE_SYSTEM) and name != "epoch"]
    first = [name for name in _FIRST if name in own]
    return ([*first, *(name for name in own if name not in first)] or names)[:MOST_PLOTS]


def lines(
    name: str, series: Series, width: int, height: int, *, log: bool, ascii_only: bool
) -> list[str]:
    by_step = all(step is not None for step in series.steps)
    xs = [float(step or 0) for step in series.steps] if by_step else list(series.times)
    order = sorted(range(len(xs)), key=xs.__getitem__)
    curve = plot.Curve([xs[place] for place in order], [series.values[place] for place in order])
    drawn = plot.plot(curve, width, height, log=log, ascii_only=ascii_only)
    head = [tables.bold(formatting.clean(name)) + "  " + _figures(series, by_step)]
    if not drawn:
        return [*head, "  " + wording.say("metrics_none_drawn")]
    return [*head, *drawn, _axis(curve, by_step, width, drawn), *_odd(series, log)]


def _figures(series: Series, by_step: bool) -> str:
    finite = [value for value in series.values if math.isfinite(value)]
    if not finite:
        return plot.short(series.values[-1]) if series.values else "-"
    low, high = min(finite), max(finite)
    told = [wording.say("metric_last", value=plot.short(series.values[-1]))]
    for key, value in (("metric_min", low), ("metric_max", high)):
        place = series.values.index(value)
        at = str(series.steps[place]) if by_step else formatting.clock(series.times[place])
        told.append(wording.say(key, value=plot.short(value), at=at))
    key = "metric_sampled" if series.sampled else "metric_points"
    told.append(wording.say(key, count=len(series.values)))
    return "  ".join(told)


def _axis(curve: plot.Curve, by_step: bool, width: int, drawn: list[str]) -> str:
    first, last = curve.xs[0], curve.xs[-1]
    left = str(int(first)) if by_step else formatting.clock(first)
    right = str(int(last)) if by_step else formatting.clock(last)
    margin = drawn[0].find("┤") if "┤" in drawn[0] else drawn[0].find("|")
    gap = max(1, width - margin - 1 - len(left) - len(right))
    return " " * (margin + 1) + left + " " * gap + right


def _odd(series: Series, log: bool) -> list[str]:
    """What cannot be drawn is told: it is often what matters."""
    odd = [place for place, value in enumerate(series.values) if not math.isfinite(value)]
    told = []
    if odd:
        step = series.steps[odd[0]]
        at = str(step) if step is not None else formatting.clock(series.times[odd[0]])
        told.append("  " + wording.say("metric_not_finite", count=len(odd), at=at))
    if log and any(value <= 0 for value in series.values):
        told.append("  " + wording.say("metric_not_positive"))
    return told
