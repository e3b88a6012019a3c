"""Attempts as processes of this machine, each under its own supervisor below the keeper.

The server makes the attempt's folder and journal, tells the keeper, and hears news on a datagram
socket. The journal is the truth; news only makes it quick.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from runyard.executors import supervisor_spec
from runyard.executors.attempt_folders import AttemptFolders
from runyard.executors.base import (
    ExecutorUnavailable,
    Launch,
    News,
    NewsKind,
    Sight,
    Sighting,
    Stop,
    Swept,
    Usage,
)
from runyard.executors.end_records import end_of, process_words
from runyard.executors.late_sweeps import LateSweeps
from runyard.executors.news_socket import NewsSocket
from runyard.executors.process_usage import ProcessUsage
from runyard.executors.supervisor_news import news_of, sighting_of
from runyard.supervisor import (
    journal,
    protocol,
    rank_records,
    reconcile,
    service_records,
    stack_dump,
    stop_request,
)
from runyard.supervisor.keeper_client import KeeperClient, KeeperUnavailable
from runyard.supervisor.stack_dump import Dump

_HUNG_S = 60.0


class Guest(Protocol):
    """Another executor whose attempts run below our keeper, in folders beside ours."""

    def owns(self, attempt_id: str) -> bool: ...
    def heard(self, told: dict[str, Any]) -> None:
        """News of an attempt it owns, as the supervisor sent it."""
        ...


class LocalExecutor:
    """See executors/base.py for the promises."""

    name = "local"

    def __init__(self, data_dir: Path, server_id: str, gpu_lock_dir: Path) -> None:
        self._folders = AttemptFolders(data_dir)
        self._server_id = server_id
        self._gpu_lock_dir = gpu_lock_dir
        self._keeper = KeeperClient(str(data_dir))
        self._hear: Callable[[News], None] | None = None
        self._news = NewsSocket(data_dir, self._take)
        self._connections = 0
        self._usage = ProcessUsage(self._folders.of)
        self._late_sweeps = LateSweeps(reconcile.sweep_again)
        self.guests: list[Guest] = []

    # the port

    def open(self, hear: Callable[[News], None]) -> None:
        self._hear = hear
        self._news.open()

    def close(self, *, keep: bool) -> None:
        self._news.close()
        self._late_sweeps.close()
        if not keep:
            self._keeper.leave()
        self._keeper.close()

    def available(self) -> tuple[bool, str]:
        try:
            self._keeper.ensure()
        except (KeeperUnavailable, OSError):
            return False, "keeper_unreachable"
        self._miss_the_old_keeper()
        return True, ""

    def nodes(self) -> None:
        return None

    def start(self, launch: Launch) -> None:
        journal.create(self._folders.of(launch.attempt_id), self._spec(launch))
        try:
            self._keeper.run(launch.attempt_id)
        except KeeperUnavailable as error:
            raise ExecutorUnavailable(str(error)) from error

    def refuse(self, attempt_id: str) -> bool:
        return self._folders.refuse(attempt_id)

    def stop(self, attempt_id: str, stop: Stop) -> None:
        self._folders.ask_to_stop(attempt_id, stop)
        stop_request.nudge(self._folders.of(attempt_id))

    def inspect(self, attempt_ids: Sequence[str]) -> dict[str, Sighting]:
        folders = {attempt_id: self._folders.of(attempt_id) for attempt_id in attempt_ids}
        sights = reconcile.look_at_all(folders.values())
        lost = [folder for folder, sight in sights.items() if sight.state == reconcile.LOST]
        if lost:
            reconcile.settle_all(lost, self._keeper.alive())
            settled = reconcile.look_at_all(lost)
            self._late_sweeps.settled(f for f, seen in settled.items() if _by_scan(seen))
            sights |= settled
        return {name: _sighting(folder, sights[folder]) for name, folder in folders.items()}

    def sweep(self, attempt_ids: Sequence[str]) -> dict[str, Swept]:
        folders = {self._folders.of(attempt_id): attempt_id for attempt_id in attempt_ids}
        return {
            folders[folder]: Swept(killed, tuple(process_words(found) for found in living))
            for folder, (killed, living) in reconcile.sweep_asked(folders).items()
        }

    def sweep_traceless(self, attempts: Mapping[str, tuple[int, float]]) -> dict[str, Swept]:
        return {
            attempt_id: Swept(killed, tuple(process_words(found) for found in living))
            for attempt_id, (killed, living) in reconcile.sweep_traceless(attempts).items()
        }

    def usage(self, attempt_ids: Sequence[str]) -> dict[str, Usage]:
        return self._usage.of(attempt_ids)

    def log_path(self, attempt_id: str, service: str = "", rank: int = 0) -> str:
        return self._folders.log_path(attempt_id, service, rank)

    def services(self, attempt_id: str) -> list[dict[str, Any]]:
        return service_records.states(self._folders.written(attempt_id))

    def ranks(self, attempt_id: str) -> list[dict[str, Any]]:
        return rank_records.states(self._folders.written(attempt_id))

    def stacks(self, attempt_id: str, seconds: float) -> list[Dump]:
        return stack_dump.of_attempt(self._folders.of(attempt_id), attempt_id, seconds)

    def remove(self, attempt_id: str) -> None:
        self._folders.remove(attempt_id)

    def touched_at(self, attempt_id: str) -> float:
        return self._folders.touched_at(attempt_id)

    def known(self) -> list[str]:
        return [
            attempt_id
            for attempt_id in self._folders.ids()
            if not any(guest.owns(attempt_id) for guest in self.guests)
        ]

    # inside

    def _miss_the_old_keeper(self) -> None:
        """What was handed to a keeper that died may have been lost with it: have a look."""
        before, self._connections = self._connections, self._keeper.connections
        if self._hear is not None and 0 < before < self._connections:
            self._hear(News("", NewsKind.LOST_SIGHT, time.time()))

    def _spec(self, launch: Launch) -> dict[str, Any]:
        locks = [
            {
                "path": str(self._gpu_lock_dir / uuid),
                "shared": launch.gpu_shared,
                "server_id": self._server_id,
            }
            for uuid in launch.gpu_uuids
        ]
        return supervisor_spec.build(launch, gpu_locks=locks)

    def _take(self, data: bytearray) -> None:
        assert self._hear is not None
        try:
            told = json.loads(data)
            for guest in self.guests:
                if guest.owns(str(told["attempt_id"])):
                    guest.heard(told)
                    return
            news = news_of(told)
        except (OSError, ValueError, KeyError, TypeError):
            return
        if news:
            self._hear(news)


def _by_scan(seen: reconcile.Sight) -> bool:
    """Whether its end was settled here, by looking at every process."""
    end = seen.journal.exit
    return end is not None and (end["by"], end["proof"]) == ("reconciler", "scan")


def _sighting(folder: str, seen: reconcile.Sight) -> Sighting:
    written = seen.journal
    if seen.state == reconcile.ABSENT:
        return Sighting(Sight.ABSENT)
    if written.exit is not None:
        return Sighting(Sight.ENDED, end=end_of(written.exit))
    living = sighting_of(written, stop_request.read(folder), _silent_since(folder))
    stuck = tuple(map(process_words, written.stuck["processes"])) if written.stuck else ()
    pid = int(written.job["pid"]) if written.job is not None else None
    return replace(living, stuck=stuck, pid=pid)


def _silent_since(folder: str) -> float | None:
    """When the supervisor last beat, if that is too long ago. Silence proves nothing about the
    job: it is told, and nobody is killed for it."""
    try:
        beat = os.stat(f"{folder}/{protocol.HEARTBEAT}").st_mtime
    except OSError:
        return None
    return beat if time.time() - beat > _HUNG_S else None
