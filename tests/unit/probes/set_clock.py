"""A clock that stands still until a test moves it."""

from __future__ import annotations


class SetClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now
