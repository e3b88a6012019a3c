"""What every sender promises: `send` returns when the receiver has taken it, else Undelivered."""

from __future__ import annotations

from typing import Protocol

from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import Delivery
from runyard.domain.reasons import Reason

TIMEOUT_S = 10.0  # for one try, from the first byte to the last


class Undelivered(Exception):
    """It did not arrive, or nobody said that it did. The reason holds no secret."""

    def __init__(
        self, code: str, /, *, again: bool = True, wished_s: float = 0.0, **params: object
    ) -> None:
        super().__init__(code)
        self.reason = Reason(code, params)
        self.again = again  # whether trying again can help
        self.wished_s = wished_s  # how long the receiver asked us to wait


class Sender(Protocol):
    def send(self, target: NotifyTarget, delivery: Delivery, now: float) -> None:
        """Blocks for as long as TIMEOUT_S; called from several threads at once."""
        ...
