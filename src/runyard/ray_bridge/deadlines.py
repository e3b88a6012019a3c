"""Calls that may block for ever, each with a deadline of its own.

While the head of a cluster is away Ray's calls to it neither return nor fail, so each is made in a
thread of its own, which is left behind when it is late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

CALL_S = 5.0
LATE_IN_A_ROW = 2  # then the cluster is called unreachable

Answer = TypeVar("Answer")


class Late(Exception):
    """No answer within the time that was given."""


class Deadlines:
    """Counts how often the cluster was late in a row; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._late = 0
        self._late_since = 0.0

    @property
    def unreachable_since(self) -> float | None:
        with self._lock:
            return self._late_since if self._late >= LATE_IN_A_ROW else None

    def call(self, ask: Callable[[], Answer], seconds: float = CALL_S) -> Answer:
        answers: list[Answer] = []
        failures: list[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                answers.append(ask())
            except BaseException as error:
                failures.append(error)
            done.set()

        began = time.time()
        threading.Thread(target=run, name="cluster call", daemon=True).start()
        if not done.wait(seconds):
            self._was_late(began)
            raise Late(f"the cluster did not answer within {seconds:g} s")
        with self._lock:
            self._late = 0
        if failures:
            raise failures[0]
        return answers[0]

    def _was_late(self, began: float) -> None:
        with self._lock:
            if self._late == 0:
                self._late_since = began
            self._late += 1
