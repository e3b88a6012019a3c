"""One Runyard server under measurement, and a keep-alive client that adds as little as it can."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

BASE = "/api/v1/training"
RUNYARD = Path(sys.executable).parent / "runyard"
PR_SET_CHILD_SUBREAPER = 36
# A job that asks for almost nothing, so that many fit on a small machine.
SMALL = {"cpu_cores": 0.01, "memory_gb": 0.01, "gpu_count": 0, "max_retries": 0}


def adopt_orphans() -> None:
    """All that we start, however detached, stays our descendant: it can be measured and ended."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(reached: Callable[[], Any], seconds: float, every: float = 0.005) -> Any:
    limit = time.monotonic() + seconds
    while True:
        if found := reached():
            return found
        if time.monotonic() > limit:
            raise TimeoutError(f"not reached within {seconds} s: {reached}")
        time.sleep(every)


class KeepAlive:
    """HTTP/1.1 over one connection; only what our own server needs."""

    def __init__(self, port: int, key: str = "") -> None:
        self.port, self.key = port, key
        self._connection: socket.socket | None = None
        self._rest = b""

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {self.key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        return self.send(head.encode() + data)

    def send(self, message: bytes) -> tuple[int, Any]:
        if self._connection is None:
            self._connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(message)
        head = self._read_until(b"\r\n\r\n")
        status = int(head[9:12])
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        data = self._read(length)
        return status, json.loads(data) if data else None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read_until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(mark)
        return head

    def _read(self, length: int) -> bytes:
        while len(self._rest) < length:
            self._more()
        data, self._rest = self._rest[:length], self._rest[length:]
        return data

    def _more(self) -> None:
        assert self._connection is not None
        chunk = self._connection.recv(1 << 18)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self._rest += chunk


class Yard:
    """A server on a folder of its own; leaving the context ends it and everything it started."""

    def __init__(self, max_concurrent: int = 2, person: Any = None, **settings: str) -> None:
        """`person`: whose server it is (see tests/throwaway_user.py); ours if nobody is named."""
        adopt_orphans()
        self.folder = Path(tempfile.mkdtemp(prefix="runyard-bench-"))
        self.command = [RUNYARD] if person is None else [person.python, "-m", "runyard"]
        self.becoming: dict[str, Any] = {} if person is None else person.becoming
        if self.becoming:
            shutil.chown(self.folder, self.becoming["user"], self.becoming["group"])
        self.port = free_port()
        self.environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("RUNYARD_")},
            "RUNYARD_DATA_DIR": str(self.folder / "data"),
            "RUNYARD_MAX_CONCURRENT": str(max_concurrent),
            "RUNYARD_PORT": str(self.port),
            "RUNYARD_GATE_CPU": "100",
            "RUNYARD_GATE_MEMORY": "100",
            "RUNYARD_GATE_DISK": "100",
            "RUNYARD_GPU_LOCK_DIR": str(self.folder / "gpu-locks"),
            **{f"RUNYARD_{name.upper()}": value for name, value in settings.items()},
        }
        if person is not None:
            self.environment["HOME"] = str(person.home)
        self.server: subprocess.Popen[bytes] | None = None
        self.http = KeepAlive(self.port)
        self.start_s = self.start()

    def __enter__(self) -> Yard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(
                (self.folder / "server.log").read_text(errors="replace")[-3000:], file=sys.stderr
            )
        self.end()

    def start(self) -> float:
        """Start (again) on the same folder; seconds until the server said that it is ready."""
        began = time.monotonic()
        with (self.folder / "server.log").open("ab") as log:
            self.server = subprocess.Popen(
                [*self.command, "server"],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self.becoming,
            )
        until(self._ready, 60)
        took = time.monotonic() - began
        self.http.key = (self.folder / "data" / "admin.key").read_text().strip()
        return took

    def _ready(self) -> bool:
        assert self.server is not None
        if self.server.poll() is not None:
            raise RuntimeError(f"the server ended with {self.server.returncode}")
        try:
            return self.http.request("GET", "/readyz")[0] == 200
        except OSError:
            self.http = KeepAlive(self.port, self.http.key)
            return False

    def kill(self) -> None:
        """kill -9 of the server alone."""
        assert self.server is not None
        self.server.kill()
        self.server.wait()
        self.http = KeepAlive(self.port, self.http.key)

    def end(self) -> None:
        """The measurement is over: end all that is ours, first politely, then by force."""
        if self.server is not None and self.server.poll() is None:
            self.server.terminate()
            try:
                self.server.wait(20)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        limit = time.monotonic() + 20
        while (left := descendants(os.getpid())) and time.monotonic() < limit:
            for pid in left:
                with contextlib.suppress(OSError):
                    kill_descendant(pid)
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.02)
        shutil.rmtree(self.folder, ignore_errors=True)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.http.request(method, BASE + path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path} gave {status}: {answer}")
        return answer

    def client(self) -> KeepAlive:
        return KeepAlive(self.port, self.http.key)

    def submit(self, command: list[str], **fields: Any) -> str:
        return str(self.api("POST", "/jobs", {"command": command, **SMALL, **fields})["job_id"])

    def submit_many(self, command: list[str], count: int, at_once: int = 5000) -> None:
        for first in range(0, count, at_once):
            jobs = [{"command": command, **SMALL}] * min(at_once, count - first)
            self.api("POST", "/jobs/batch", {"jobs": jobs})

    def wait(self, job: str, status: str = "completed", seconds: float = 30) -> None:
        until(lambda: self.api("GET", f"/jobs/{job}")["status"] == status, seconds)

    def counts(self) -> dict[str, int]:
        return dict(self.api("GET", "/queue/status?limit=1")["counts"])

    def wait_until_counted(self, status: str, count: int, seconds: float = 600) -> None:
        # Seldom: counting 100,000 jobs is work for the very server that is measured.
        until(lambda: self.counts().get(status, 0) >= count, seconds, every=0.1)


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    todo = [root]
    while todo:
        found += (mine := children.get(todo.pop(), []))
        todo += mine
    return found


def kill_descendant(pid: int) -> None:
    """kill -9, unless the number belongs to another by now: then its parents are not ours."""
    pidfd = os.pidfd_open(pid)
    try:
        above = pid
        while above > 1 and above != os.getpid():
            above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
        if above == os.getpid():
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def is_job_process(pid: int) -> bool:
    try:
        return b"RUNYARD_JOB_ID=" in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def pss_mb(pids: Iterable[int]) -> float:
    """Memory with shared pages counted in parts, which is what more of the same really costs."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


def cpu_seconds(pids: Iterable[int]) -> float:
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
