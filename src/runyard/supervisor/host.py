"""What a supervisor process keeps between attempts: who it is, its news socket, its next child."""

from __future__ import annotations

import os
import signal
from typing import Any

from runyard.supervisor import cgroup, child, identity, kernel, news

# Blocked for the whole life of a supervisor and read one by one with sigtimedwait.
SIGNALS = frozenset((signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGIO))


class Host:
    __slots__ = (
        "_group_places",
        "_next_child",
        "identity",
        "job_identity",
        "keeper_pid",
        "news",
        "reaps_orphans",
    )

    def __init__(self, keeper_pid: int) -> None:
        self.keeper_pid = keeper_pid
        self._group_places: dict[str, str] | None = None
        self.news = news.NewsSender()
        self.identity: dict[str, Any] = {
            **identity.of_process(os.getpid()),
            "keeper_pid": keeper_pid,
            "containment": "subreaper" if kernel.is_subreaper() else "tag",
        }
        self.reaps_orphans = self.identity["containment"] == "subreaper"
        self.job_identity = identity.machine_life()
        self._next_child: child.Child | None = None

    def prepare_child(self) -> None:
        """Fork the next attempt's child ahead, while nobody waits for it."""
        if self._next_child is None:
            self._next_child = child.fork_child()

    def take_child(self) -> child.Child:
        ready, self._next_child = self._next_child, None
        if ready is not None and not ready.alive():
            ready.discard()
            ready = None
        return ready or child.fork_child()

    def group_places(self) -> dict[str, str]:
        """Where control groups can be made, looked for when an attempt first wants one."""
        if self._group_places is None:
            self._group_places = cgroup.find()
        return self._group_places
