"""Long work in a thread of its own, so that Ctrl-C always reaches the one who waits for it.

A KeyboardInterrupt that comes while Python cleans up an object is swallowed. A thread that
does nothing but wait has nothing to clean up.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def done(work: Callable[[], T]) -> T:
    """What `work` returns or raises. After a KeyboardInterrupt it is left behind, unfinished."""
    news: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def told() -> None:
        try:
            news.put((work(), None))
        except BaseException as error:
            news.put((None, error))

    threading.Thread(target=told, name="runyard-aside", daemon=True).start()
    value, error = news.get()
    if error is None:
        result: T = value
        return result
    try:
        raise error
    finally:
        del error  # else it would hold this frame, which holds it
