"""How long a process of Ray's has been there: longer than it was asked for, if it waited for work.

This module travels to the nodes by value: it uses the standard library, nothing of ours.
"""

from __future__ import annotations

import os
import time

_TICKS = os.sysconf("SC_CLK_TCK")
_MARGIN_S = 0.1


def age_s() -> float:
    """Of this process."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICKS


def is_fresh(age: float, asked_for: float) -> bool:
    """Whether a process of this age was started for what was asked for so many seconds ago."""
    return age < asked_for + _MARGIN_S
