"""An executor without processes: attempts live and end as a test says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.executors.base import End, Launch, News, NewsKind, Sight, Sighting, Stop, Swept, Usage
from runyard.supervisor import stack_dump
from runyard.supervisor.stack_dump import Dump


class ScriptedExecutor:
    """Keeps the promises of executors/base.py. Attempts live until `finish`, or a stop, ends them;
    their logs are files a test writes. It may be opened again, as what outlives a server does."""

    name = "local"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stubborn = False  # attempts that do not end when they are asked to
        self.failure: Exception | None = None  # what every hand-over meets
        self.losing = False  # hand-overs that arrive nowhere, without an error
        self.gate = threading.Event()  # hand-overs wait for it
        self.gate.set()
        self.launches: dict[str, Launch] = {}
        self.stops: dict[str, list[Stop]] = {}
        self.refused: set[str] = set()
        self.sweeps: list[str] = []
        self.touched: dict[str, float] = {}
        self.usages: dict[str, Usage] = {}
        self.service_states: dict[str, list[dict[str, Any]]] = {}
        self.rank_states: dict[str, list[dict[str, Any]]] = {}
        self.traceless: dict[str, Swept] = {}  # what a search for lost ones finds
        self._lock = threading.Lock()
        self._sightings: dict[str, Sighting] = {}
        self._hear: Callable[[News], None] | None = None

    # the port

    def open(self, hear: Callable[[News], None]) -> None:
        self._hear = hear

    def close(self, *, keep: bool) -> None:  # noqa: ARG002
        self._hear = None

    def available(self) -> tuple[bool, str]:
        return True, ""

    def start(self, launch: Launch) -> None:
        self.gate.wait(60)
        if self.failure is not None:
            raise self.failure
        if self.losing:
            return
        now = time.time()
        with self._lock:
            if launch.attempt_id in self._sightings or launch.attempt_id in self.refused:
                return
            self.launches[launch.attempt_id] = launch
            stopped = bool(self.stops.get(launch.attempt_id))
            if stopped:
                self._sightings[launch.attempt_id] = Sighting(Sight.STARTING)
            else:
                self._sightings[launch.attempt_id] = Sighting(Sight.RUNNING, started_at=now)
        path = Path(self.log_path(launch.attempt_id))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if stopped:
            self.finish(launch.attempt_id, None, cause="cancelled_before_start")
        else:
            self.tell(News(launch.attempt_id, NewsKind.STARTED, now))

    def nodes(self) -> None:
        return None

    def refuse(self, attempt_id: str) -> bool:
        with self._lock:
            if attempt_id in self._sightings:
                return False
            self.refused.add(attempt_id)
            return True

    def stop(self, attempt_id: str, stop: Stop) -> None:
        with self._lock:
            self.stops.setdefault(attempt_id, []).append(stop)
            known = attempt_id in self._sightings
        if known and not self.stubborn:
            self.finish(attempt_id, None, signal=15, cause="cancelled")

    def inspect(self, attempt_ids: Sequence[str]) -> dict[str, Sighting]:
        with self._lock:
            return {one: self._seen(one) for one in attempt_ids}

    def sweep(self, attempt_ids: Sequence[str]) -> dict[str, Swept]:
        with self._lock:
            self.sweeps += attempt_ids
            seen = {one: self._sightings.get(one, Sighting(Sight.ABSENT)) for one in attempt_ids}
        return {one: Swept(len(found.stuck), found.stuck) for one, found in seen.items()}

    def sweep_traceless(self, attempts: Mapping[str, tuple[int, float]]) -> dict[str, Swept]:
        return {one: self.traceless.get(one, Swept()) for one in attempts}

    def usage(self, attempt_ids: Sequence[str]) -> dict[str, Usage]:
        return {one: self.usages[one] for one in attempt_ids if one in self.usages}

    def log_path(self, attempt_id: str, service: str = "", rank: int = 0) -> str:
        name = f"rank-{rank}.log" if rank else "out.log"
        name = f"service-{service}.log" if service else name
        return str(self.folder / attempt_id / name)

    def services(self, attempt_id: str) -> list[dict[str, Any]]:
        return self.service_states.get(attempt_id, [])

    def ranks(self, attempt_id: str) -> list[dict[str, Any]]:
        return self.rank_states.get(attempt_id, [])

    def stacks(self, attempt_id: str, seconds: float) -> list[Dump]:
        return stack_dump.of_attempt(str(self.folder / attempt_id), attempt_id, seconds)

    def remove(self, attempt_id: str) -> None:
        Path(self.log_path(attempt_id)).unlink(missing_ok=True)
        self.forget(attempt_id)

    def touched_at(self, attempt_id: str) -> float:
        return self.touched.get(attempt_id, 0.0)

    def known(self) -> list[str]:
        with self._lock:
            return list(self._sightings)

    # the script

    def finish(
        self,
        attempt_id: str,
        code: int | None = 0,
        *,
        signal: int | None = None,
        cause: str = "exited",
        detail: Mapping[str, Any] | None = None,
        tell: bool = True,
    ) -> None:
        """Its end record is written; without `tell` nobody hears of it before they inspect."""
        now = time.time()
        with self._lock:
            seen = self._sightings.get(attempt_id, Sighting(Sight.STARTING))
            if seen.sight is Sight.ENDED:
                return
            stops = self.stops.get(attempt_id, [])
            receipt = {"proof": "echild", "stop": _told(stops[-1]) if stops else None}
            started = seen.started_at
            end = End(code, signal, cause, "supervisor", now, started, detail or {}, receipt)
            self._sightings[attempt_id] = Sighting(Sight.ENDED, started_at=started, end=end)
        if tell:
            self.tell(News(attempt_id, NewsKind.ENDED, now, end))

    def cannot_kill(self, attempt_id: str, *processes: Mapping[str, Any]) -> None:
        with self._lock:
            self._sightings[attempt_id] = replace(self._sightings[attempt_id], stuck=processes)
        self.tell(News(attempt_id, NewsKind.STUCK, time.time(), stuck=processes))

    def forget(self, attempt_id: str) -> None:
        """As if its folder were gone."""
        with self._lock:
            self._sightings.pop(attempt_id, None)

    def ask_to_look(self) -> None:
        """Makes the server reconcile now."""
        self.tell(News("", NewsKind.LOST_SIGHT, time.time()))

    def tell(self, news: News) -> None:
        hear = self._hear
        if hear is not None:
            hear(news)

    def running(self) -> list[str]:
        with self._lock:
            return [one for one, seen in self._sightings.items() if seen.sight is not Sight.ENDED]

    def _seen(self, attempt_id: str) -> Sighting:
        seen = self._sightings.get(attempt_id, Sighting(Sight.ABSENT))
        stops = self.stops.get(attempt_id)
        if stops and seen.sight in (Sight.STARTING, Sight.RUNNING):
            return replace(seen, sight=Sight.STOPPING, stop_seq=stops[-1].seq)
        return seen


def _told(stop: Stop) -> dict[str, Any]:
    return {
        "seq": stop.seq,
        "cause": stop.cause,
        "grace_s": stop.grace_s,
        "requested_by": stop.requested_by,
        "requested_at": stop.requested_at,
    }
