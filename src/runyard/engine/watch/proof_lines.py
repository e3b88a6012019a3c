"""The line of a log that shows what a detector found, so that people can go and look there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from runyard.domain.monitoring import loss_divergence, loss_spike, not_finite, stalled_training
from runyard.domain.monitoring.finding import Finding
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.reading import sight
from runyard.domain.progress.written import clean
from runyard.logs import log_ends

LONGEST = 500  # characters shown
_PARTS = 20  # states of a bar that are looked at in one line
_NEAR = 1e-5  # params are rounded

Shown = tuple[int, str, Sighting]


def of(path: str, finding: Finding) -> dict[str, Any]:
    """For the evidence of an alert: `log_line` with text and number, or nothing. What a program
    reports by `runyard.report` alone is in no line."""
    search = _SEARCHES.get(finding.code)
    found = search(list(_lines(path)), finding) if search else None
    if found is None:
        return {}
    number, text, _ = found
    return {"log_line": {"text": text[:LONGEST], "number": number}}


def _lines(path: str) -> Iterator[Shown]:
    """What the end of the log says of a training, oldest first; numbers count from 1."""
    ends = log_ends.read(path)
    begun = ends.tail[0][0] if ends.tail else 0
    for number, text in (*(one for one in ends.first_errors if one[0] < begun), *ends.tail):
        for part in text.split("\r")[-_PARTS:]:
            seen = sight(part)
            if seen is not None:
                yield number, clean(part), seen


def _first_bad(lines: list[Shown], finding: Finding) -> Shown | None:
    """Where the newest run of values that are no numbers began."""
    found, in_run = None, False
    for line in lines:
        value = line[2].values.get(str(finding.params["metric"]))
        if value is None:
            continue
        bad = not math.isfinite(value)
        if bad and not in_run:
            found = line
        in_run = bad
    return found


def _of_value(lines: list[Shown], finding: Finding) -> Shown | None:
    """The newest with this very value."""
    metric, value = str(finding.params["metric"]), finding.params["value"]
    if not isinstance(value, int | float):
        return None
    for line in reversed(lines):
        shown = line[2].values.get(metric)
        if shown is not None and math.isclose(shown, value, rel_tol=_NEAR, abs_tol=_NEAR):
            return line
    return None


def _newest_of_metric(lines: list[Shown], finding: Finding) -> Shown | None:
    metric = str(finding.params["metric"])
    return next((line for line in reversed(lines) if metric in line[2].values), None)


def _last_step(lines: list[Shown], _finding: Finding) -> Shown | None:
    """The last that told of a step: what came after it is what hangs."""
    return next((line for line in reversed(lines) if _tells_step(line[2])), None)


def _tells_step(seen: Sighting) -> bool:
    known = (seen.step, seen.batch, seen.epoch, seen.epochs_done)
    return seen.kind == "train" and any(one is not None for one in known)


_SEARCHES: dict[str, Callable[[list[Shown], Finding], Shown | None]] = {
    not_finite.CODE: _first_bad,
    loss_spike.CODE: _of_value,
    loss_divergence.CODE: _newest_of_metric,
    stalled_training.CODE: _last_step,
}
