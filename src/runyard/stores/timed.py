"""A store that tells how long its writes took, from the asking to the commit."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from runyard.stores.base import Store, Transaction

T = TypeVar("T")


def timed(store: Store, took: Callable[[float], None]) -> Store:
    """`store`, which calls `took` with the seconds of each write."""
    return cast(Store, _Timed(store, took))


class _Timed:
    def __init__(self, store: Store, took: Callable[[float], None]) -> None:
        self._store = store
        self._took = took

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if callable(found):
            setattr(self, name, found)  # looked for once
        return found

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,
    ) -> T:
        began = time.perf_counter()
        try:
            return self._store.write(work, durable=durable, exclusive=exclusive)
        finally:
            self._took(time.perf_counter() - began)

    def write_soon(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,
    ) -> Future[T]:
        began = time.perf_counter()
        future = self._store.write_soon(work, durable=durable, exclusive=exclusive)
        future.add_done_callback(lambda _: self._took(time.perf_counter() - began))
        return future
