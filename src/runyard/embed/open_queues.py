"""Which queue managers this process has, so that a monitor beside one sees what it sees."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

from runyard.engine.yard import Yard
from runyard.stores.base import Store

if TYPE_CHECKING:
    from runyard.embed.queue_manager import TrainingQueueManager

_SQLITE = "sqlite:///"
_lock = threading.Lock()
_managers: weakref.WeakSet[TrainingQueueManager] = weakref.WeakSet()


def add(manager: TrainingQueueManager) -> None:
    with _lock:
        _managers.add(manager)


def remove(manager: TrainingQueueManager) -> None:
    with _lock:
        _managers.discard(manager)


def find(db: str | Store) -> TrainingQueueManager | None:
    """The one on this database: the same store, or the same address."""
    with _lock:
        known = list(_managers)
    for manager in known:
        if isinstance(db, str):
            url = manager.settings.database_url
            if url and _same(url) == _same(db):
                return manager
        elif manager._store is db:
            return manager
    return None


def yard_of(manager: TrainingQueueManager) -> Yard:
    """Its engine; another one after every stop. For the monitor, not for applications."""
    return manager._yard


def _same(url: str) -> str:
    """A file by its true path, however it was written."""
    if not url.startswith(_SQLITE):
        return url
    return _SQLITE + os.path.realpath(url.removeprefix(_SQLITE))
