"""Services that a client runs on its own machine for a job, such as a reward server.

Each runs below a guard process, which ends everything the service started when it is told to, and
also when this client is killed.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runyard.sdk import errors, service_files

_BEYOND_GRACE_S = 5.0
_LOOK_EVERY_S = 0.05
_LOOK_S = 2.0
_GUARD = Path(__file__).parent.parent / "supervisor" / "guard.py"


@dataclass(frozen=True)
class LocalService:
    """What to run beside a job, on this machine, while this process follows the job.

    `{port}` in the command is replaced by the port, which RUNYARD_PORT holds as well. The job
    finds it as RUNYARD_SERVICE_<NAME>_URL and RUNYARD_PORT_<NAME>. `port` is a number, a range
    (first, last), or None for any free one. It is ready when `health` ("tcp", or a path to GET)
    answers at `host`, by which the job must be able to reach this machine. When it ends too
    early it is started again (`restart="on-failure"`), else the job is cancelled.
    """

    name: str
    command: str | Sequence[str]
    port: int | tuple[int, int] | None = None
    health: str = "tcp"
    ready_timeout_s: float = 60.0
    restart: Literal["never", "on-failure"] = "never"
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    host: str = "127.0.0.1"
    grace_s: float = 10.0  # between SIGTERM and SIGKILL when it is stopped
    log: str | None = None  # default: a file of its own below ~/.local/state/runyard

    def __post_init__(self) -> None:
        if not service_files.NAME.fullmatch(self.name):
            raise _invalid(self.name, "the name has other signs than letters, digits, - and _")
        if not self.command or not all(isinstance(word, str) for word in self.command):
            raise _invalid(self.name, "there is no command")
        if self.health != "tcp" and not self.health.startswith("/"):
            raise _invalid(self.name, 'health is "tcp" or a path such as /health')
        if self.restart not in ("never", "on-failure"):
            raise _invalid(self.name, "restart is never or on-failure")
        first, last = self.ports
        if not 0 <= first <= last <= 65535:
            raise _invalid(self.name, "port is a number up to 65535, or a range (first, last)")

    @property
    def ports(self) -> tuple[int, int]:
        """First and last port it may have; 0 and 0 when any will do."""
        if self.port is None:
            return 0, 0
        return (self.port, self.port) if isinstance(self.port, int) else self.port


class RunningService:
    """One service and, below its guard, its processes; `start` may be called again."""

    def __init__(self, service: LocalService, taken: set[int]) -> None:
        self.service = service
        self.port = _free_port(service, taken)
        self.url = f"http://{service.host}:{self.port}"
        self.log = service.log or service_files.new_log(service.name)
        self._guard: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._turn = threading.Lock()  # a start and a stop never overlap

    def start(self, urls: Mapping[str, str]) -> None:
        """Return when it is ready; LocalServiceFailed when it ends before, or takes too long."""
        deadline = time.monotonic() + self.service.ready_timeout_s
        with self._turn:
            if self._over.is_set():
                raise self._failed("stopped")
            if self._guard is not None:
                _close_stdin(self._guard)
            self._guard = self._spawn(urls)
        while not self._healthy():
            if self._guard.poll() is not None:
                raise self._failed("ended", exit_code=self._guard.returncode)
            if time.monotonic() >= deadline:
                raise self._failed("not_ready", seconds=self.service.ready_timeout_s)
            if self._over.wait(_LOOK_EVERY_S):
                raise self._failed("stopped")
        # Whoever answered: a service that has ended meanwhile is not ready.
        if self._guard.poll() is not None:
            raise self._failed("ended", exit_code=self._guard.returncode)

    def wait(self) -> int:
        """Until nothing of it lives; its exit code."""
        assert self._guard is not None
        return self._guard.wait()

    def give_up(self) -> None:
        """A start that is under way fails now, and no other follows."""
        self._over.set()

    @property
    def living(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    def stop(self) -> bool:
        """End it and all it started; False when something still lives after the grace."""
        self._over.set()
        with self._turn:
            guard = self._guard
        if guard is None:
            return True
        _signal(guard, signal.SIGTERM)
        _close_stdin(guard)
        try:
            guard.wait(self.service.grace_s + _BEYOND_GRACE_S)
        except subprocess.TimeoutExpired:
            return False  # the guard goes on with it after we are gone
        return True

    def force(self) -> None:
        """End the grace of a stop that is under way."""
        if self._guard is not None:
            _signal(self._guard, signal.SIGUSR1)

    def _spawn(self, urls: Mapping[str, str]) -> subprocess.Popen[bytes]:
        service = self.service
        given = {"RUNYARD_PORT": str(self.port), **urls}
        environment = {**os.environ, **(service.env or {}), **given}
        words = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid())]
        with open(self.log, "ab", opener=service_files.private) as log:
            return subprocess.Popen(
                [*words, str(service.grace_s), *service_files.argv(service.command, self.port)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=service.cwd,
                env=environment,
                start_new_session=True,  # a Ctrl-C is ours: the job is ended first
            )

    def _healthy(self) -> bool:
        host, path = self.service.host, self.service.health
        try:
            if path == "tcp":
                with socket.create_connection((host, self.port), _LOOK_S) as link:
                    # Nobody listens, and the kernel connected the socket with itself.
                    return bool(link.getsockname() != link.getpeername())
            asking = http.client.HTTPConnection(host, self.port, timeout=_LOOK_S)
            with contextlib.closing(asking):
                asking.request("GET", path)
                return 200 <= asking.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False

    def _failed(self, how: str, **params: float) -> errors.LocalServiceFailed:
        return failed(self.service.name, how, self.log, **params)


def _signal(guard: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        guard.send_signal(number)


def _close_stdin(guard: subprocess.Popen[bytes]) -> None:
    assert guard.stdin is not None
    with contextlib.suppress(OSError):
        guard.stdin.close()


def signal_of(exit_code: int) -> str:
    """The name of the signal that ended it, empty if none did: its guard tells 128 + N then, and
    the system tells -N of the guard itself."""
    number = -exit_code if exit_code < 0 else exit_code - 128
    return signal.Signals(number).name if number in set(signal.Signals) else ""


def how_ended(exit_code: int) -> str:
    name = signal_of(exit_code)
    return f"was ended by {name}" if name else f"ended with exit code {exit_code}"


def failed(name: str, how: str, log: str, **params: Any) -> errors.LocalServiceFailed:
    """`how`: ended, not_ready or stopped. One that a signal ended is told as killed."""
    code = params.get("exit_code", 0)
    if how == "ended" and signal_of(code):
        how, params = "killed", {**params, "signal": signal_of(code)}
    words = {
        "ended": how_ended(code),
        "killed": how_ended(code),
        "not_ready": f"was not ready within {params.get('seconds')} s",
        "stopped": "was stopped before it was ready",
    }
    return errors.LocalServiceFailed(
        f"Local service {name} {words[how]}; its log is {log}.",
        code=f"local_service_{how}",
        params={"name": name, "log": log, **params},
    )


def _invalid(name: str, why: str) -> errors.BadRequest:
    return errors.BadRequest(
        f"Local service {name!r}: {why}.",
        code="local_service_invalid",
        params={"name": name, "why": why},
    )


def _free_port(service: LocalService, taken: set[int]) -> int:
    """A port that nobody listens on, and that no other service of ours was given."""
    first, last = service.ports
    for number in range(first, last + 1) if first else service_files.quiet_ports():
        with socket.socket() as probe, contextlib.suppress(OSError):
            # Else a port that was just in use counts as taken for a minute.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", number))
            port = int(probe.getsockname()[1])
            if port not in taken:
                taken.add(port)
                return port
    raise errors.LocalServiceFailed(
        f"Local service {service.name}: no port of {first} to {last} is free.",
        code="local_service_no_port",
        params={"name": service.name, "first": first, "last": last},
    )
