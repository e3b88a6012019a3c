"""What has been fetched, counted by many threads and shown in one file."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from runyard.prefetch.plan import Outcome, Progress

EVERY_S = 0.5
_RATE_OVER_S = 5.0

State = Literal["listing", "fetching", "waiting", "checking", "ended"]


@dataclass
class _File:
    name: str
    size: int | None
    done: int = 0
    state: State | None = None  # None: nobody is at it


class Tracker:
    """Counts per file, so that a file that starts over takes its bytes back."""

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._files: list[_File] = []
        self._finished = 0
        self._arrived = 0
        self._samples: deque[tuple[float, int]] = deque([(clock(), 0)])
        self._outcome: Outcome | None = None

    def expect(self, name: str, size: int | None) -> int:
        """A file to come; the number is its name in the other calls."""
        with self._lock:
            self._files.append(_File(name, size))
            return len(self._files) - 1

    def show(self, number: int, state: State, done: int, size: int | None) -> None:
        """Where a file stands, whoever brought it there."""
        with self._lock:
            file = self._files[number]
            file.state, file.done = state, done
            file.size = size if size is not None else file.size

    def arrived(self, number: int, count: int) -> None:
        with self._lock:
            self._files[number].done += count
            self._arrived += count

    def leave(self, number: int) -> None:
        with self._lock:
            self._files[number].state = None

    def finish(self, number: int, size: int) -> None:
        with self._lock:
            file = self._files[number]
            file.size = file.done = size
            file.state = None
            self._finished += 1

    def end(self, outcome: Outcome) -> None:
        with self._lock:
            self._outcome = outcome
        self.write()

    def snapshot(self) -> Progress:
        with self._lock:
            sizes = [file.size for file in self._files]
            busy = [file for file in self._files if file.state is not None]
            known = bool(sizes) and None not in sizes
            return {
                "state": self._state(busy),
                "bytes_done": sum(file.done for file in self._files),
                "bytes_total": sum(size or 0 for size in sizes) if known else None,
                "files_done": self._finished,
                "files_total": len(self._files),
                "current": busy[0].name if busy else None,
                "rate_bps": self._rate(),
                "at": time.time(),
                "outcome": self._outcome,
            }

    def write(self) -> None:
        """Progress that cannot be shown must not end what it is about."""
        aside = f"{self._path}.tmp"
        # One after the other, or an older one could take the place of the last.
        with self._writing, contextlib.suppress(OSError):
            with open(aside, "w", encoding="utf-8") as file:
                json.dump(self.snapshot(), file)
            os.replace(aside, self._path)

    def _state(self, busy: list[_File]) -> State:
        if self._outcome is not None:
            return "ended"
        states = [file.state for file in busy]
        order: tuple[State, ...] = ("fetching", "checking", "waiting")
        for state in order:
            if state in states:
                return state
        return "fetching" if self._files else "listing"

    def _rate(self) -> float:
        now = self._clock()
        self._samples.append((now, self._arrived))
        while len(self._samples) > 2 and now - self._samples[1][0] > _RATE_OVER_S:
            self._samples.popleft()
        since, before = self._samples[0]
        return round((self._arrived - before) / (now - since), 1) if now > since else 0.0


def print_line(fields: dict[str, Any] | Outcome) -> None:
    """One whole line at once: threads share the descriptor, and others may read the log."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(fields).encode() + b"\n")
