"""How long to wait between tries, and when to give up: tries in a row without a new byte count."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from runyard.prefetch.failures import Failure, Trouble

LONGEST_S = 30.0
# A server that asks for more than this is asked again by the next attempt, not by this one.
LONGEST_ASKED_S = 300.0


class Patience:
    """One per file: spent by tries that brought nothing, renewed by every one that did."""

    def __init__(
        self,
        tries: int,
        first_s: float,
        note: Callable[[Trouble, float], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tries, self._first_s, self._note, self._sleep = tries, first_s, note, sleep
        self._spent = 0

    def renew(self) -> None:
        self._spent = 0

    def wait(self, trouble: Trouble) -> None:
        """Sleep before the next try, or raise Failure where there is none left."""
        self._spent += 1
        asked = trouble.wait_s
        if self._spent >= self._tries or (asked is not None and asked > LONGEST_ASKED_S):
            params = {**trouble.params, "reason": trouble.reason, "tries": self._spent}
            if asked is not None:
                params["retry_after_s"] = asked
            raise Failure("network", None, **params) from trouble
        delay = self.delay(random.random()) if asked is None else asked
        self._note(trouble, delay)
        self._sleep(delay)

    def delay(self, chance: float) -> float:
        """Doubles from try to try; `chance` in 0..1 spreads those who failed together."""
        return float(min(LONGEST_S, self._first_s * 2 ** (self._spent - 1)) * (0.75 + chance / 2))


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds that a Retry-After header asks for."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError):
        return None
