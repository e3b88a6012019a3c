"""A part of the engine that ticks: woken at once by events, and by a slow tick as a safety net."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from runyard.engine import server_log


class Loop:
    """Runs `duty` in its own thread whenever woken, or after `interval` seconds without a wake.

    `duty` may return the seconds until it wants to run again (shorter than the interval).
    An error in it is logged and the loop goes on: one bad row must not stop the yard.
    """

    def __init__(
        self,
        name: str,
        duty: Callable[[], float | None],
        interval: float,
        first_after: float = 0.0,
    ) -> None:
        self.name = name
        self._first_after = first_after
        self._duty = duty
        self._interval = interval
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self, timeout: float = 5.0) -> None:
        self._stopping = True
        self._woken.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        self._woken.wait(self._first_after)
        while True:
            self._woken.clear()
            if self._stopping:
                return
            pause = self._once()
            self._woken.wait(self._interval if pause is None else min(pause, self._interval))

    def _once(self) -> float | None:
        try:
            return self._duty()
        except Exception as error:
            server_log.of().opt(exception=error).error("the {} loop failed and goes on", self.name)
            # A failing duty that asks to run again at once would spin.
            time.sleep(0.05)
            return 1.0
