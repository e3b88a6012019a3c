"""What an item of the plan turned out to be, once its source was asked; and the asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from runyard.prefetch.backoff import Patience
from runyard.prefetch.failures import Trouble
from runyard.prefetch.http_requests import Connections
from runyard.prefetch.remote_file import RemoteFile

Given = TypeVar("Given")


@dataclass(frozen=True)
class Listed:
    """Files to fetch, or a path of this machine. A folder's files have their paths in it."""

    files: tuple[RemoteFile, ...] = ()
    folder: bool = False
    local: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Asking:
    """How sources are asked: the connections, and a fresh patience for each question."""

    connections: Connections
    patience: Callable[[], Patience]

    def until_answered(self, ask: Callable[[], Given]) -> Given:
        patience = self.patience()
        while True:
            try:
                return ask()
            except Trouble as trouble:
                patience.wait(trouble)
