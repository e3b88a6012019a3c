"""Looking again for processes of attempts that were settled without a supervisor and a keeper.

Such an end is proven by looking at every process. One that forks and exits all the time can be
between two numbers at each look; it cannot be so for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

AFTER_S = (1.0, 5.0, 30.0)


class LateSweeps:
    """`sweep` is called with the folders of settled attempts so many seconds after their end."""

    def __init__(self, sweep: Callable[[list[str]], object]) -> None:
        self._sweep = sweep
        self._due: list[tuple[float, str]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def settled(self, folders: Iterable[str]) -> None:
        now = time.monotonic()
        with self._changed:
            self._due += [(now + after, folder) for folder in folders for after in AFTER_S]
            if self._thread is None and self._due and not self._closed:
                self._thread = threading.Thread(target=self._run, name="late-sweeps", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while folders := self._next():
            self._sweep(folders)

    def _next(self) -> list[str]:
        """Those that are due, waited for; empty when closed."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                ready = sorted({folder for due, folder in self._due if due <= now})
                if ready:
                    self._due = [later for later in self._due if later[0] > now]
                    return ready
                first = min((due for due, _ in self._due), default=None)
                self._changed.wait(None if first is None else first - now)
        return []
