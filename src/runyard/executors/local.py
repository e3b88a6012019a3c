"""Attempts as processes of this machine, each under its own supervisor below the keeper.

The server makes the attempt's folder and journal, tells the keeper, and hears news on a datagram
socket. The journal is the truth; news only makes it quick.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from runyard.executors import supervisor_spec
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
from runyard.executors.process_usage import ProcessUsage
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

_NEWS_SOCKET = "news.sock"
_DATAGRAM = 256 * 1024
_HUNG_S = 60.0
_LISTEN_AGAIN_S = 0.05


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
        self._data_dir = data_dir
        self._attempts = data_dir / "attempts"
        self._server_id = server_id
        self._gpu_lock_dir = gpu_lock_dir
        self._keeper = KeeperClient(str(data_dir))
        self._hear: Callable[[News], None] | None = None
        self._socket: socket.socket | None = None
        self._listener: threading.Thread | None = None
        self._closing = threading.Event()
        self._connections = 0
        self._usage = ProcessUsage(self._folder)
        self._late_sweeps = LateSweeps(reconcile.sweep_again)
        self.guests: list[Guest] = []

    # the port

    def open(self, hear: Callable[[News], None]) -> None:
        self._hear = hear
        self._socket = _bind(self._data_dir)
        self._listener = threading.Thread(target=self._listen, name="news", daemon=True)
        self._listener.start()

    def close(self, *, keep: bool) -> None:
        self._closing.set()
        self._late_sweeps.close()
        if not keep:
            self._keeper.leave()
        self._keeper.close()
        if self._socket:
            self._socket.shutdown(socket.SHUT_RDWR)  # which ends the listener's waiting
        if self._listener:
            self._listener.join(2)
        if self._socket:
            self._socket.close()
            with contextlib.suppress(OSError):
                os.unlink(self._data_dir / _NEWS_SOCKET)

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
        journal.create(self._folder(launch.attempt_id), self._spec(launch))
        try:
            self._keeper.run(launch.attempt_id)
        except KeeperUnavailable as error:
            raise ExecutorUnavailable(str(error)) from error

    def refuse(self, attempt_id: str) -> bool:
        record = {
            "code": None,
            "signal": None,
            "cause": "never_started",
            "by": "reconciler",
            "proof": "absent",
            "started_at": None,
            "ended_at": time.time(),
        }
        return journal.refuse(self._folder(attempt_id), record)

    def stop(self, attempt_id: str, stop: Stop) -> None:
        folder = self._folder(attempt_id)
        # The attempt may not have been handed over yet: its supervisor will find the request.
        os.makedirs(folder, mode=0o700, exist_ok=True)
        stop_request.write(
            folder,
            seq=stop.seq,
            cause=stop.cause,
            grace_s=stop.grace_s,
            requested_by=stop.requested_by,
            requested_at=stop.requested_at,
        )
        stop_request.nudge(folder)

    def inspect(self, attempt_ids: Sequence[str]) -> dict[str, Sighting]:
        folders = {attempt_id: self._folder(attempt_id) for attempt_id in attempt_ids}
        sights = reconcile.look_at_all(folders.values())
        lost = [folder for folder, sight in sights.items() if sight.state == reconcile.LOST]
        if lost:
            reconcile.settle_all(lost, self._keeper.alive())
            settled = reconcile.look_at_all(lost)
            self._late_sweeps.settled(f for f, seen in settled.items() if _by_scan(seen))
            sights |= settled
        return {name: _sighting(folder, sights[folder]) for name, folder in folders.items()}

    def sweep(self, attempt_ids: Sequence[str]) -> dict[str, Swept]:
        folders = {self._folder(attempt_id): attempt_id for attempt_id in attempt_ids}
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
        name = protocol.service_log(service) if service else protocol.rank_log(rank)
        return f"{self._folder(attempt_id)}/{name}"

    def services(self, attempt_id: str) -> list[dict[str, Any]]:
        try:
            return service_records.states(journal.read(self._folder(attempt_id)))
        except FileNotFoundError:
            return []

    def ranks(self, attempt_id: str) -> list[dict[str, Any]]:
        try:
            return rank_records.states(journal.read(self._folder(attempt_id)))
        except FileNotFoundError:
            return []

    def stacks(self, attempt_id: str, seconds: float) -> list[Dump]:
        return stack_dump.of_attempt(self._folder(attempt_id), attempt_id, seconds)

    def remove(self, attempt_id: str) -> None:
        shutil.rmtree(self._folder(attempt_id), ignore_errors=True)

    def touched_at(self, attempt_id: str) -> float:
        try:
            return os.stat(self._folder(attempt_id)).st_mtime
        except OSError:
            return 0.0

    def known(self) -> list[str]:
        try:
            with os.scandir(self._attempts) as entries:
                return [
                    entry.name
                    for entry in entries
                    if protocol.valid_attempt_id(entry.name)
                    and entry.is_dir(follow_symlinks=False)
                    and not any(guest.owns(entry.name) for guest in self.guests)
                ]
        except FileNotFoundError:
            return []

    # inside

    def _miss_the_old_keeper(self) -> None:
        """What was handed to a keeper that died may have been lost with it: have a look."""
        before, self._connections = self._connections, self._keeper.connections
        if self._hear is not None and 0 < before < self._connections:
            self._hear(News("", NewsKind.LOST_SIGHT, time.time()))

    def _folder(self, attempt_id: str) -> str:
        return f"{self._attempts}/{attempt_id}"

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

    def _listen(self) -> None:
        assert self._socket is not None
        buffer = bytearray(_DATAGRAM)
        while not self._closing.is_set():
            try:
                size = self._socket.recv_into(buffer)
            except OSError:
                self._closing.wait(_LISTEN_AGAIN_S)
                continue
            self._take(buffer[:size])

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
    asked = stop_request.read(folder)
    seq = int(asked["seq"]) if asked else 0
    hung = _silent_since(folder)
    stuck = tuple(map(process_words, written.stuck["processes"])) if written.stuck else ()
    if written.job is None:
        return Sighting(Sight.STARTING, stop_seq=seq, hung_since=hung, stuck=stuck)
    stopping = asked is not None or written.main_exit is not None
    return Sighting(
        Sight.STOPPING if stopping else Sight.RUNNING,
        started_at=float(written.job["started_at"]),
        stop_seq=seq,
        hung_since=hung,
        stuck=stuck,
        pid=int(written.job["pid"]),
    )


def _silent_since(folder: str) -> float | None:
    """When the supervisor last beat, if that is too long ago. Silence proves nothing about the
    job: it is told, and nobody is killed for it."""
    try:
        beat = os.stat(f"{folder}/{protocol.HEARTBEAT}").st_mtime
    except OSError:
        return None
    return beat if time.time() - beat > _HUNG_S else None


def _bind(data_dir: Path) -> socket.socket:
    """The socket's path may be longer than an address can hold: go through the directory."""
    path = data_dir / _NEWS_SOCKET
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * 1024 * 1024)
    folder = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listening.bind(f"/proc/self/fd/{folder}/{_NEWS_SOCKET}")
    finally:
        os.close(folder)
    os.chmod(path, 0o600)
    return listening


def news_of(told: dict[str, Any]) -> News | None:
    """What a supervisor's or keeper's datagram means; None where it means nothing to us."""
    attempt_id = str(told["attempt_id"])
    at = float(told.get("at", time.time()))
    match told["kind"]:
        case "started":
            return News(attempt_id, NewsKind.STARTED, float(told.get("started_at", at)))
        case "ended" if isinstance(told.get("exit"), dict):
            return News(attempt_id, NewsKind.ENDED, at, end_of(told["exit"]))
        case "stuck":
            stuck = tuple(process_words(found) for found in told.get("processes", ()))
            return News(attempt_id, NewsKind.STUCK, at, stuck=stuck)
        case str(kind) if kind.startswith("service_"):
            return News(attempt_id, NewsKind.SERVICE, at, service=told)
        case "finishing":
            return News(attempt_id, NewsKind.FINISHING, at)
        case "stopping":
            cause, grace_s = str(told["cause"]), float(told["grace_s"])
            return News(attempt_id, NewsKind.STOPPING, at, cause=cause, grace_s=grace_s)
        case "ended" | "lost":
            return News(attempt_id, NewsKind.LOST_SIGHT, at)
    return None
