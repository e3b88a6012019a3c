"""A real store with hooks inside its transactions, to make two things happen in one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runyard.stores.base import Store, Transaction


class WatchedStore:
    """`before` is called at the beginning of every write, `after` when its work is done and not
    yet committed; what they raise is raised by the write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before: Callable[[Transaction], None] = _nothing
        self.after: Callable[[Transaction], None] = _nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, work: Callable[[Any], Any], **options: bool) -> Any:
        return self._store.write(self._watched(work), **options)

    def write_soon(self, work: Callable[[Any], Any], **options: bool) -> Any:
        return self._store.write_soon(self._watched(work), **options)

    def _watched(self, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(tx: Any) -> Any:
            self.before(tx)
            value = work(tx)
            self.after(tx)
            return value

        return run


def _nothing(_tx: Transaction) -> None:
    pass
