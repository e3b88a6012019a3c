"""SIGINT, SIGTERM and SIGHUP while a session is open; only the main thread can take them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class TakenSignals:
    """While `noted`, a signal is only told to `note`. At other times it does what it did before,
    but one that would end this process without a word raises SystemExit, so that `finally`,
    `with` and `atexit` still get their turn."""

    def __init__(self, note: Callable[[int], None], leaving: Callable[[int], None]) -> None:
        self._note = note
        self._leaving = leaving
        self._noting = 0
        self._before: dict[int, Any] = {}
        self._taken = False
        self._process = 0

    def take(self) -> None:
        if self._taken or threading.current_thread() is not threading.main_thread():
            return
        self._taken, self._process = True, os.getpid()
        for number in TAKEN:
            handler = signal.getsignal(number)
            # nohup and shells that start background jobs set "ignore": that is respected.
            # None is a handler that was not set by Python and could not be set again.
            if handler is not signal.SIG_IGN and handler is not None:
                self._before[number] = handler
                signal.signal(number, self._heard)

    def give_back(self) -> None:
        """Restore what was there, but for handlers that somebody replaced meanwhile."""
        if not self._taken or threading.current_thread() is not threading.main_thread():
            return
        self._taken = False
        self._noting = 0
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._heard:
                signal.signal(number, handler)

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        self._noting += 1
        try:
            yield
        finally:
            self._noting = max(0, self._noting - 1)

    def note_from_now_on(self) -> None:
        """Until they are given back: the end has begun."""
        self._noting += 1

    def _heard(self, number: int, frame: FrameType | None) -> None:
        ours = self._taken and self._process == os.getpid()  # not a fork of it
        if self._noting and ours:
            self._note(number)
            return
        before = self._before[number]
        if callable(before):
            before(number, frame)
        elif ours:
            self._leaving(number)
            leave(number)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def leave(number: int) -> NoReturn:
    """The exception Python has for the signal."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)
