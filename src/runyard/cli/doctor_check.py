"""What one check of `runyard doctor` found."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    name: str
    level: str  # ok, warn, fail
    seen: str
    advice: str = ""
