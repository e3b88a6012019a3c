"""Loss or gradients that are NaN or infinite: what is computed from now on is worth nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt, plain
from runyard.domain.monitoring.series import Sample

CODE = "not_finite"
RECENT = 10
MANY = 3  # of the recent ones
# Mixed precision skips steps with infinite gradients now and then, which is healthy.
MOST_GRADIENTS = 5


def watches(name: str) -> bool:
    """Losses, perplexities and gradient norms; other metrics may have good reasons."""
    return "loss" in name or "perplexity" in name or name == "grad_norm"


def find(samples: Sequence[Sample], new: int = 0) -> Finding | None:
    """One bad loss is a warning; two at the end, or three of ten, are an error. `new` of them were
    not looked at before."""
    recent = samples[-max(RECENT, new) :]
    bad = [sample for sample in recent if not math.isfinite(sample.value)]
    if not bad:
        return None
    ending = _in_a_row(recent)
    if samples[-1].name == "grad_norm":
        if ending < MOST_GRADIENTS:
            return None
        level = AlertLevel.ERROR
    else:
        lasting = ending >= 2 or len(bad) >= MANY
        level = AlertLevel.ERROR if lasting else AlertLevel.WARNING
    return Finding(CODE, level, _params(bad, ending), excerpt(samples))


def _in_a_row(recent: Sequence[Sample]) -> int:
    count = 0
    for sample in reversed(recent):
        if math.isfinite(sample.value):
            break
        count += 1
    return count


def _params(bad: Sequence[Sample], ending: int) -> dict[str, object]:
    first = bad[-ending] if ending else bad[0]
    return {
        "metric": first.name,
        "value": plain(first.value),
        "step": first.step,
        "times": len(bad),
        "lasting": ending > 0,
    }
