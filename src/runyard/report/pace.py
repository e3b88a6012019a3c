"""How often a callback tells something that changes in every step."""

from __future__ import annotations

import time


class Pace:
    """True at the first call, then once in `every_s` seconds."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._last = float("-inf")

    def due(self) -> bool:
        now = time.monotonic()
        if 0 <= now - self._last < self._every_s:
            return False
        self._last = now
        return True
