"""What is to be known and done in a process of Ray's on a node that is ours alone.

This module travels to the nodes by value: it uses the standard library, nothing of ours.
"""

from __future__ import annotations

import os
import sys
import time

_TICKS = os.sysconf("SC_CLK_TCK")
_MARGIN_S = 0.1
# Ray imports them where they are installed, to be able to send what is theirs.
_NEVER_SENT = ("pydantic", "pyarrow", "starlette")


def keep_lean() -> None:
    """For this process they are not installed: a tenth of a second and more at its first word."""
    for name in _NEVER_SENT:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def age_s() -> float:
    """Of this process."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / _TICKS


def is_fresh(age: float, asked_for: float) -> bool:
    """Whether a process of this age was started for what was asked for so many seconds ago; else
    it had been waiting."""
    return age < asked_for + _MARGIN_S
