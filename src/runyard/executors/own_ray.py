"""A Ray of our own on this machine, for servers that join no cluster.

It runs in a session of its own and is ended by that session, never by name or with `ray stop`,
which would hit every other Ray here. It may outlive the server: the next one finds it by the
record in the data directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from runyard.supervisor import identity

_START_S = 90.0
_LEAVE_S = 5.0
_KILL_S = 10.0
_LOOK_S = 0.05
_ADDRESS = "127.0.0.2"  # of the loopback, whatever becomes of the machine's network
_OBJECT_STORE_BYTES = 100_000_000  # only logs go through it
_READY = b"Ray runtime started"
_KEPT_ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")
_SESSION = 3  # field of /proc/PID/stat, counted from the state


class Pool(Protocol):
    @property
    def python(self) -> str: ...
    @property
    def gpus(self) -> tuple[int, ...] | None: ...


class OwnRay:
    """`folder` keeps its token and the record of what was started."""

    def __init__(self, folder: Path, pool: Pool) -> None:
        self._folder = folder
        self._pool = pool
        self._record_path = folder / "own.json"
        self._lock = threading.Lock()
        self._leaving = False
        self.token_path = folder / "token"

    def ensure(self) -> str:
        """The address of our Ray, started if there is none. OSError when it does not start."""
        with self._lock:
            if self._leaving:
                raise OSError("the server is leaving")
            record = self._record()
            if record is not None:
                if _listens(record["address"]) and _leader_lives(record):
                    return str(record["address"])
                self._end()
            return self._start()

    def stop(self) -> None:
        """End all of it, also one that is just starting; nothing of its session is left when this
        returns."""
        self._leaving = True
        with self._lock:
            self._end()

    # inside

    def _end(self) -> None:
        record = self._record()
        if record is None:
            return
        if _leader_lives(record):
            # SIGINT is what it heeds at once; SIGTERM takes it half a minute.
            with contextlib.suppress(ProcessLookupError):
                os.kill(record["leader"]["pid"], signal.SIGINT)
            _wait_empty(record, _LEAVE_S)
        deadline = time.monotonic() + _KILL_S
        while (left := list(_members(record))) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_S)
        if left:
            raise OSError(f"processes of the own Ray do not end: {left}")
        shutil.rmtree(record["temp_dir"], ignore_errors=True)
        self._record_path.unlink(missing_ok=True)

    def _start(self) -> str:
        self._make_token()
        address = f"{_ADDRESS}:{_free_port()}"
        # Short: Ray makes sockets below it, whose paths have room for 107 bytes.
        temp_dir = tempfile.mkdtemp(prefix="runyard-ray-", dir="/tmp")
        log = self._folder / "own.log"
        with open(log, "wb") as out:
            leader = subprocess.Popen(
                self._command(address, temp_dir),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self._environment(),
                cwd="/",
                start_new_session=True,
            )
        self._write_record(
            {"address": address, "temp_dir": temp_dir, "leader": identity.of_process(leader.pid)}
        )
        deadline = time.monotonic() + _START_S
        while _READY not in log.read_bytes():
            over = self._leaving or time.monotonic() >= deadline
            if leader.poll() is not None or over:
                said = log.read_text(errors="replace")[-500:]
                self._end()
                raise OSError(f"the own Ray does not start: {said}")
            time.sleep(_LOOK_S)
        return address

    def _command(self, address: str, temp_dir: str) -> list[str]:
        gpus = self._pool.gpus
        return [
            *(self._pool.python or sys.executable, "-m", "ray.scripts.scripts"),
            *("start", "--head", "--block", "--disable-usage-stats"),
            f"--node-ip-address={_ADDRESS}",
            f"--port={address.rpartition(':')[2]}",
            f"--dashboard-port={_free_port()}",
            f"--temp-dir={temp_dir}",
            "--include-dashboard=false",
            "--include-log-monitor=false",
            f"--object-store-memory={_OBJECT_STORE_BYTES}",
            *([f"--num-gpus={len(gpus)}"] if gpus is not None else []),
            *self._client_port(),
        ]

    def _client_port(self) -> list[str]:
        """A Ray with its client package would listen on a port that every other takes, too; one
        without refuses the option."""
        ask = [self._pool.python or sys.executable, "-I", "-c", "import grpc"]
        found = subprocess.run(ask, capture_output=True, timeout=_START_S, check=False)
        return [f"--ray-client-server-port={_free_port()}"] if found.returncode == 0 else []

    def _environment(self) -> dict[str, str]:
        """Never the server's own, which may hold secrets."""
        environment = {k: v for k, v in os.environ.items() if k in _KEPT_ENVIRONMENT}
        environment |= {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_path),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_process_group_cleanup_enabled": "1",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
            # It would kill actors when memory runs out: the kernel and our supervisors see to it.
            "RAY_memory_monitor_refresh_ms": "0",
        }
        if self._pool.gpus is not None:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, self._pool.gpus))
        return environment

    def _make_token(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(self.token_path, flags, 0o600)
            os.write(descriptor, secrets.token_hex(32).encode())
            os.close(descriptor)

    def _record(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self._record_path.read_text())
        except (OSError, ValueError):
            return None
        if not identity.same_machine_life(record["leader"]):
            return None  # before a restart of the machine: its numbers mean nothing now
        return dict(record)

    def _write_record(self, record: dict[str, Any]) -> None:
        draft = self._record_path.with_suffix(".tmp")
        draft.write_text(json.dumps(record))
        draft.rename(self._record_path)


def _leader_lives(record: dict[str, Any]) -> bool:
    pidfd = identity.open_verified(record["leader"])
    if pidfd is None:
        return False
    os.close(pidfd)
    stat = identity.stat_fields(record["leader"]["pid"])
    return stat is not None and stat[0] not in (b"Z", b"X")


def _members(record: dict[str, Any]) -> Iterator[int]:
    """The living processes of its session. As long as one of them lives, the number of the session
    is given to nobody else; a leader of another start means that none is left."""
    leader = record["leader"]
    began = identity.start_ticks(leader["pid"])
    if began is not None and began != leader["start_ticks"]:
        return
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = identity.stat_fields(int(name))
        if stat is None or stat[0] in (b"Z", b"X"):
            continue
        if int(stat[_SESSION]) == leader["pid"] and int(stat[19]) >= leader["start_ticks"]:
            yield int(name)


def _wait_empty(record: dict[str, Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(True for _ in _members(record)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 2.0).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
