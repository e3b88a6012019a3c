"""What threads and signals tell the one thread that waits for them."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any


class News:
    """Pairs of a kind and a value, in the order they came."""

    def __init__(self) -> None:
        # Its put may be called inside its own get, as handlers of signals do.
        self._queue: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def tell(self, kind: str, value: Any = None) -> None:
        self._queue.put((kind, value))

    def next(self) -> tuple[str, Any]:
        return self._queue.get()

    def came(self, wanted: str, seconds: float) -> bool:
        """Whether that came before another signal, and within so many seconds."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(queue.Empty):
            while (left := deadline - time.monotonic()) > 0:
                kind = self._queue.get(timeout=left)[0]
                if kind in (wanted, "signal"):
                    return kind == wanted
        return False

    def begin(self, kind: str, work: Callable[[], Any]) -> None:
        """Do it in a thread that does not keep the process alive; its result or error is news."""

        def told() -> None:
            try:
                self.tell(kind, work())
            except BaseException as error:
                self.tell(kind, error)

        threading.Thread(target=told, name=f"runyard-{kind}", daemon=True).start()
