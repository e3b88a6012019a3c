"""What a test of an executor stands on: a place that attempts run at, and a server over it.

An executor's test file gives the contract a `place`. Scripts of attempts are run by /bin/sh and
need head, tr, sleep, setsid and what the contract's docstrings say.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from runyard.domain import ids
from runyard.executors.base import End, Executor, Launch, News, Sight, Sighting, Stop

T = TypeVar("T")
PATIENCE_S = 60.0
_PORTS = (16_000, 21_000)


class ExecutorPlace:
    """One per test. Subclass it: `make`, `living`, and what differs of the rest."""

    enforces_memory = True
    has_services = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # of this test; scripts find it at the same path
        # Processes are told apart by it, also from those of a suite that runs beside this one.
        self.job_ref = ids.job_ref(os.urandom(8))
        self._first_tag = (1 << 60) + int.from_bytes(os.urandom(4), "big") * 100

    def make(self) -> Executor:
        """Another executor over the same attempts, not opened: as a server that starts again."""
        raise NotImplementedError

    def living(self, attempt_id: str) -> list[str]:
        """What there is of an attempt outside of its folder: processes, containers, actors."""
        raise NotImplementedError

    def kill_watcher(self, attempt_id: str) -> None:
        """Kill -9 what stands between the executor and the attempt: supervisor, runner, actor."""
        raise NotImplementedError

    def freeze_watcher(self, attempt_id: str) -> None:
        """SIGSTOP what would end the attempt: it lives, and does nothing."""
        raise NotImplementedError

    def leave(self) -> None:
        """The test is over and nothing runs any more: end helper processes that would stay."""

    def launch(self, number: int, script: str, **changes: Any) -> Launch:
        """An attempt that runs a script. Override to add an image, slices ..."""
        name = f"{self.job_ref}.{number}"
        run_dir = self.folder / "data" / "attempts" / name
        given = Launch(
            attempt_id=name,
            job_ref=self.job_ref,
            tag=self._first_tag + number,
            argv=("/bin/sh", "-c", script),
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "RUNYARD_ATTEMPT_ID": name,
                "RUNYARD_STOP_FILE": str(run_dir / "should_stop"),
            },
            cwd=str(self.folder),
            leftover_grace_s=0.5,
        )
        return replace(given, **changes)

    def limited(self, launch: Launch, memory_mb: int) -> Launch:
        """The same with a limit that the kernel, or whoever watches it, enforces."""
        return replace(launch, memory_limit_mb=memory_mb, memory_soft=True, own_group=True)

    def tells(self, end: End, number: signal.Signals) -> bool:
        """Whether an end says that this signal ended it. Engines tell 128 + its number."""
        return (end.code, end.signal) == (None, number)


class Serving:
    """An executor at work, as one server after the other has it."""

    def __init__(self, place: ExecutorPlace) -> None:
        self.place = place
        self.heard: list[News] = []
        self.executor = place.make()
        self.launched: list[str] = []
        self._stops = 0
        self._open()

    def _open(self) -> None:
        self.executor.open(self.heard.append)
        until(lambda: self.executor.available()[0], lambda: self.executor.available())

    def shut_down(self) -> None:
        """What runs goes on."""
        self.executor.close(keep=True)

    def start_again(self) -> None:
        """After `shut_down`: another server, which knows nothing but what is there."""
        self.executor = self.place.make()
        self._open()

    def close(self) -> None:
        for attempt_id in self.launched:
            if not self._is_over(attempt_id):
                self.executor.stop(attempt_id, Stop(10_000, "user", 0.0, "test", time.time()))
        for attempt_id in self.launched:
            until(functools.partial(self._is_over, attempt_id))
        self.executor.close(keep=False)
        self.place.leave()

    def _is_over(self, attempt_id: str) -> bool:
        return self.look(attempt_id).sight in (Sight.ENDED, Sight.ABSENT)

    def start(self, launch: Launch) -> str:
        self.launched.append(launch.attempt_id)
        self.executor.start(launch)
        return launch.attempt_id

    def stop(self, attempt_id: str, grace_s: float) -> None:
        self._stops += 1
        self.executor.stop(attempt_id, Stop(self._stops, "user", grace_s, "ann", time.time()))

    def look(self, attempt_id: str) -> Sighting:
        return self.executor.inspect([attempt_id])[attempt_id]

    def log(self, attempt_id: str) -> str:
        try:
            return Path(self.executor.log_path(attempt_id)).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def said(self, attempt_id: str, words: str) -> None:
        """Wait until its log says so."""
        until(lambda: words in self.log(attempt_id), lambda: (self.log(attempt_id), words))

    def end(self, attempt_id: str) -> End:
        """Wait for it."""

        def ended() -> End | None:
            seen = self.look(attempt_id)
            return seen.end if seen.sight is Sight.ENDED else None

        return until(ended, lambda: (self.look(attempt_id), self.log(attempt_id)))


def free_port() -> int:
    """Below those that the kernel gives to connections, so that none of them gets it meanwhile."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(*_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise AssertionError(f"no port of {_PORTS} is free")


def until(condition: Callable[[], T | None], words: Callable[[], object] | None = None) -> T:
    """The first true value; a failure that tells `words` when patience is over."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, words() if words else "it did not happen in time"
        time.sleep(0.02)
