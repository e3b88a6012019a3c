"""Steps that take much longer than they did before in the same attempt."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.finding import Finding, excerpt, plain
from runyard.domain.monitoring.robust import finite
from runyard.domain.monitoring.series import Sample

CODE = "slow_down"
WARM_UP = 5  # compiling, caches, the first batches
BASELINE = 30
RECENT = 12
SLOWER = 0.6  # of the baseline


def find(rates: Sequence[Sample]) -> Finding | None:
    """`rates` are steps per second between moments at which new steps were seen. A pause for an
    evaluation or a checkpoint is one slow sample, and the median does not mind."""
    known = finite(rates)[WARM_UP:]
    if len(known) < BASELINE + RECENT:
        return None
    before = sorted(sample.value for sample in known[:-RECENT])
    recent = [sample.value for sample in known[-RECENT:]]
    usual, now = statistics.median(before), statistics.median(recent)
    slow_before = before[len(before) // 10]  # it was so slow a tenth of the time
    if usual <= 0 or now >= SLOWER * usual or now >= slow_before:
        return None
    params = {
        "steps_per_sec": plain(now),
        "usual": plain(usual),
        "ratio": round(now / usual, 3),
        "step": known[-1].step,
    }
    return Finding(CODE, AlertLevel.WARNING, params, excerpt(rates))
