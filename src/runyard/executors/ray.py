"""Attempts in a Ray cluster. The server knows Ray only through the lines of the ray-bridge.

An attempt has a folder here as every other: its journal says what was handed over and how it
ended, and the bridge copies logs, metrics and the journals of its slices into it. What a server
must know after a restart is in these folders and in the cluster.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runyard.executors import ray_nodes, ray_spec
from runyard.executors.attempt_folders import AttemptFolders, written_in
from runyard.executors.base import (
    ExecutorNode,
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
from runyard.executors.own_ray import OwnRay
from runyard.executors.ray_link import Begin, BridgeAway, Line, RayLink
from runyard.executors.supervisor_news import news_of, sighting_of
from runyard.supervisor import (
    journal,
    protocol,
    rank_records,
    service_records,
    stop_request,
)
from runyard.supervisor.stack_dump import Dump

_ASK_S = 12.0
_SWEEP_S = 45.0
_UNTOLD_S = 30.0  # a bridge that says nothing for so long is of no use
_TELL_SILENCE_S = 60.0
_STACKS_MARGIN_S = 15.0
_AGAIN_S = 1.0
STARTING = "ray_starting"
UNREACHABLE = "ray_unreachable"


@dataclass(frozen=True, slots=True)
class RayOptions:
    """`address` empty: a Ray of our own on this machine, with `gpus` as its pool."""

    address: str = ""
    python: str = ""
    node_dir: str = ""
    token_path: str = ""
    allow_insecure: bool = False
    shared: bool = False  # other servers may hand over the same attempts
    gpus: tuple[int, ...] | None = None


class RayExecutor:
    """See executors/base.py for the promises."""

    name = "ray"

    def __init__(self, data_dir: Path, owner: str, options: RayOptions) -> None:
        self._data_dir = data_dir
        self._folders = AttemptFolders(data_dir)
        self._owner = owner
        self._options = options
        self._own = None if options.address else OwnRay(data_dir / "ray", options)
        self._link = RayLink(data_dir / "logs" / "ray-bridge.log", self._begin, self._told)
        self._hear: Callable[[News], None] | None = None
        self._lock = threading.Lock()
        self._why = STARTING  # why nothing can be started; empty: it can
        self._since = time.time()
        self._told_at = 0.0
        self._cluster = ""
        self._nodes: tuple[ExecutorNode, ...] = ()
        self._usage: dict[str, ray_nodes.Measured] = {}

    # the port

    def open(self, hear: Callable[[News], None]) -> None:
        self._hear = hear
        self._link.open()

    def close(self, *, keep: bool) -> None:
        self._link.close()
        if self._own is not None and not keep:
            self._own.stop()

    def available(self) -> tuple[bool, str]:
        with self._lock:
            if not self._why and time.monotonic() - self._told_at > _UNTOLD_S:
                return False, UNREACHABLE
            return not self._why, self._why

    def nodes(self) -> Sequence[ExecutorNode]:
        with self._lock:
            return self._nodes

    def start(self, launch: Launch) -> None:
        usable, why = self.available()
        if not usable:
            raise ExecutorUnavailable(why)
        folder = self._folders.of(launch.attempt_id)
        os.makedirs(f"{folder}/{ray_spec.SLICES}", 0o700, exist_ok=True)
        journal.create(folder, ray_spec.build(launch, folder, by_grant=self._own is not None))
        # From here on it is handed over: a bridge that is away finds it when it comes.
        with contextlib.suppress(BridgeAway):
            self._link.tell({"do": "run", "attempt_id": launch.attempt_id})

    def refuse(self, attempt_id: str) -> bool:
        if self._options.shared and not self._refused_by_all(attempt_id):
            return False
        return self._folders.refuse(attempt_id)

    def stop(self, attempt_id: str, stop: Stop) -> None:
        self._folders.ask_to_stop(attempt_id, stop)
        with contextlib.suppress(BridgeAway):
            self._link.tell({"do": "stop", "attempt_id": attempt_id})

    def inspect(self, attempt_ids: Sequence[str]) -> dict[str, Sighting]:
        seen = {attempt_id: self._look(attempt_id) for attempt_id in attempt_ids}
        unknown = [attempt_id for attempt_id, sighting in seen.items() if sighting is None]
        in_cluster = self._find(unknown) if unknown else set()
        found = {}
        for attempt_id, sighting in seen.items():
            if sighting is not None:
                found[attempt_id] = sighting
            elif in_cluster is None:
                found[attempt_id] = Sighting(Sight.STARTING, hung_since=self._silent_since())
            elif attempt_id in in_cluster:
                found[attempt_id] = Sighting(Sight.STARTING)
            else:
                found[attempt_id] = Sighting(Sight.ABSENT)
        return found

    def sweep(self, attempt_ids: Sequence[str]) -> dict[str, Swept]:
        swept = {}
        for attempt_id in attempt_ids:
            with contextlib.suppress(BridgeAway):  # its nodes cannot be asked: nothing to tell
                asked = {"do": "sweep_slices", "attempt_id": attempt_id}
                told = self._link.ask(asked, _SWEEP_S)
                living = tuple(process_words(found) for found in told["living"])
                swept[attempt_id] = Swept(int(told["killed"]), living)
        return swept

    def sweep_traceless(self, attempts: Mapping[str, tuple[int, float]]) -> dict[str, Swept]:
        """By the names in the cluster; without it nothing can be said, and it is asked again."""
        try:
            ended = self._link.ask({"do": "sweep", "attempt_ids": list(attempts)}, 2 * _ASK_S)
        except BridgeAway:
            return {}
        return {one: Swept(killed=int(one in ended["ended"])) for one in attempts}

    def usage(self, attempt_ids: Sequence[str]) -> dict[str, Usage]:
        with self._lock:
            known = self._usage
        return {one: known[one].usage for one in attempt_ids if one in known}

    def log_path(self, attempt_id: str, service: str = "", rank: int = 0) -> str:
        return self._folders.log_path(attempt_id, service, rank)

    def services(self, attempt_id: str) -> list[dict[str, Any]]:
        return service_records.states(written_in(self._slice(attempt_id, 0)))

    def ranks(self, attempt_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for index in range(self._slice_count(attempt_id)):
            found += rank_records.states(written_in(self._slice(attempt_id, index)))
        return sorted(found, key=lambda rank: int(rank["rank"]))

    def stacks(self, attempt_id: str, seconds: float) -> list[Dump]:
        """A bridge that was just lost may be back soon: it is worth some patience."""
        deadline = time.monotonic() + seconds
        asked = {"do": "stacks", "attempt_id": attempt_id, "seconds": seconds}
        while (seen := self._look(attempt_id)) is not None and seen.sight is not Sight.ENDED:
            try:
                told = self._link.ask(asked, seconds + _STACKS_MARGIN_S)["stacks"]
                return ray_spec.ranks_first([Dump(**one) for one in told])
            except BridgeAway:
                if self._link.closing or time.monotonic() >= deadline:
                    break
                time.sleep(_AGAIN_S)
        return []

    def remove(self, attempt_id: str) -> None:
        self._folders.remove(attempt_id)

    def touched_at(self, attempt_id: str) -> float:
        return self._folders.touched_at(attempt_id)

    def known(self) -> list[str]:
        return [attempt_id for attempt_id in self._folders.ids() if self.owns(attempt_id)]

    def owns(self, attempt_id: str) -> bool:
        """Folders of other executors are beside ours."""
        return protocol.valid_attempt_id(attempt_id) and os.path.isdir(self._slices(attempt_id))

    def heard(self, told: dict[str, Any]) -> None:
        """News that a supervisor of this machine sent: ours are on nodes."""

    # inside

    def _slices(self, attempt_id: str) -> str:
        return f"{self._folders.of(attempt_id)}/{ray_spec.SLICES}"

    def _slice(self, attempt_id: str, index: int) -> str:
        return f"{self._slices(attempt_id)}/{index}"

    def _slice_count(self, attempt_id: str) -> int:
        try:
            return len(os.listdir(self._slices(attempt_id)))
        except OSError:
            return 0

    def _look(self, attempt_id: str) -> Sighting | None:
        """None where nothing is known of it here."""
        folder = self._folders.of(attempt_id)
        try:
            written = journal.read(folder)
        except FileNotFoundError:
            return None
        if written.exit is not None:
            return Sighting(Sight.ENDED, end=end_of(written.exit))
        if written.spec is None:
            return None
        with contextlib.suppress(BridgeAway):
            self._link.tell({"do": "run", "attempt_id": attempt_id})
        slices = [
            written_in(self._slice(attempt_id, index))
            for index in range(max(1, self._slice_count(attempt_id)))
        ]
        seen = sighting_of(slices[0], stop_request.read(folder), self._silent_since())
        stuck = [found for one in slices if one.stuck for found in one.stuck["processes"]]
        return replace(seen, stuck=tuple(map(process_words, stuck)))

    def _refused_by_all(self, attempt_id: str) -> bool:
        """Another server of the same database may be about to hand it over."""
        try:
            asked = {"do": "refuse", "attempt_id": attempt_id}
            return bool(self._link.ask(asked, _ASK_S)["refused"])
        except BridgeAway:
            return False

    def _silent_since(self) -> float | None:
        """Since when the cluster cannot be asked, once that is long enough to be told."""
        usable, _ = self.available()
        return None if usable or time.time() - self._since < _TELL_SILENCE_S else self._since

    def _find(self, attempt_ids: Sequence[str]) -> set[str] | None:
        """Those that have something in the cluster; None while nobody can say."""
        if not self.available()[0]:
            return None
        try:
            asked = {"do": "find", "attempt_ids": list(attempt_ids), "adopt": True}
            return set(self._link.ask(asked, _ASK_S)["found"])
        except BridgeAway:
            return None

    def _begin(self) -> Begin:
        address, environment = self._options.address, dict(os.environ)
        environment["RAY_AUTH_MODE"] = "token"
        environment["RAY_USAGE_STATS_ENABLED"] = "0"
        environment["MALLOC_ARENA_MAX"] = "2"  # else each of its many threads keeps what logs took
        if self._options.token_path:
            environment["RAY_AUTH_TOKEN_PATH"] = self._options.token_path
        if self._own is not None:
            try:
                address = self._own.ensure()
            except OSError as error:  # tried again; until then it is told why
                self._set_why(ray_spec.why_own(str(error), self._options.python))
                raise
            environment["RAY_AUTH_TOKEN_PATH"] = str(self._own.token_path)
        arguments = ["--data-dir", str(self._data_dir), "--address", address]
        arguments += ["--owner", self._owner, "--node-dir", self._options.node_dir]
        if self._options.allow_insecure:
            arguments.append("--allow-insecure")
        if self._options.shared:
            arguments.append("--shared")
        return Begin(ray_spec.python(self._options.python), arguments, environment)

    def _told(self, line: Line) -> None:
        match line["told"]:
            case "news":
                self._pass_on(line["news"])
            case "cluster":
                self._take_cluster(line)
            case "joined":
                self._joined(line)
            case "refused":
                self._set_why(ray_spec.why(line["code"], line["params"]))
            case "dropped":
                self._pass_on({"kind": "lost", "attempt_id": line["attempt_id"]})
            case "gone":
                self._gone()

    def _pass_on(self, told: dict[str, Any]) -> None:
        news = news_of(told)
        if news is not None and self._hear is not None:
            self._hear(news)

    def _take_cluster(self, line: Line) -> None:
        away = line["unreachable_since"] is not None
        with self._lock:
            self._told_at = time.monotonic()
            self._usage = ray_nodes.usages(line["usage"], self._usage)
            if self._cluster or self._own is not None:
                self._nodes = ray_nodes.nodes(line["nodes"], self._cluster)
        if away:
            self._set_why(UNREACHABLE)
        elif self.available()[1] == UNREACHABLE:
            self._set_why("")

    def _joined(self, line: Line) -> None:
        """Attach again to what an earlier bridge was watching, and end what ended without one."""
        with self._lock:
            self._told_at = time.monotonic()
            self._cluster = "" if self._own is not None else str(line["address"])
        self._set_why("")
        ended = []
        for attempt_id in self.known():
            with contextlib.suppress(OSError):
                written = journal.read(self._folders.of(attempt_id))
                if written.exit is not None:
                    ended.append(attempt_id)
                elif written.spec is not None:
                    self._link.tell({"do": "run", "attempt_id": attempt_id})
        with contextlib.suppress(BridgeAway):
            self._link.tell({"do": "sweep", "attempt_ids": ended})
        if self._hear is not None:
            self._hear(News("", NewsKind.LOST_SIGHT, time.time()))

    def _gone(self) -> None:
        if not self.available()[1] or self.available()[1] == STARTING:
            self._set_why(UNREACHABLE if self._cluster or self._nodes else STARTING)

    def _set_why(self, why: str) -> None:
        with self._lock:
            if why != self._why:
                self._why = why
                self._since = time.time()
