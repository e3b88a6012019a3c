"""A real server under test, seen from outside: its process, its HTTP API, its data directory."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runyard.supervisor import identity

BASE = "/api/v1/training"
TERMINAL = {"completed", "failed", "cancelled"}


def _own_slot() -> int:
    """A number that no other test process of this machine has while this one lives, whoever runs
    it: a name of sockets, which needs no file and goes with the process."""
    for number in range(16):
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(f"\0runyard-test-slot-{number}")
        except OSError:
            holder.close()
        else:
            holder.detach()
            return number
    raise AssertionError("sixteen test processes on one machine")


# Servers of tests that run at the same time take their ports from different pools. They lie below
# those that the kernel gives to connections: a cluster on this machine has hundreds of them.
_SLOT = _own_slot()
POOL = range(21000 + 200 * _SLOT, 21200 + 200 * _SLOT)
_FREE = range(26000 + 400 * _SLOT, 26400 + 400 * _SLOT)
# No gate may close on a busy test machine, and retries must not take minutes.
SETTINGS = {
    "RUNYARD_PORT_RANGE": f"{POOL[0]}-{POOL[-1]}",
    "RUNYARD_GATE_CPU": "100",
    "RUNYARD_GATE_MEMORY": "100",
    "RUNYARD_GATE_DISK": "100",
    "RUNYARD_RETRY_DELAYS": "0.2,0.2,0.2",
    "RUNYARD_DOCKER_HOST": "off",  # whatever runs on the machine of who tests
}
SMALL = {"cpu_cores": 0.01, "memory_gb": 0.01, "gpu_count": 0, "max_retries": 0}
_ports = itertools.cycle(random.SystemRandom().sample(_FREE, len(_FREE)))
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(condition: Callable[[], Any], seconds: float = 60, words: Any = "", every: float = 0.02):
    """The first true value of `condition`; fails with `words` after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            said = words() if callable(words) else words
            raise AssertionError(f"not within {seconds} s: {said}")
        time.sleep(every)


def free_port() -> int:
    """One that no connection and no test beside this one gets before it is listened on."""
    for port in itertools.islice(_ports, len(_FREE)):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))  # free at every address of this machine
            except OSError:
                continue
            return port
    raise AssertionError(f"every port of {_FREE} is in use")


def port_is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Answer:
    def __init__(self, status: int, headers: Any, data: bytes) -> None:
        self.status, self.headers, self.data = status, headers, data
        try:
            self.body = json.loads(data) if data else None
        except ValueError:
            self.body = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class RunningYard:
    """Started on its own folder and a free port; `stop` ends it and everything it started."""

    def __init__(
        self,
        folder: Path,
        *flags: object,
        max_concurrent: int = 4,
        env: dict[str, str] | None = None,
        data_dir: Path | None = None,
        python: str = sys.executable,
        becoming: dict[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.data = data_dir or folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.flags = ["--max-concurrent", max_concurrent, *flags]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("RUNYARD_")}
        self.env |= SETTINGS | {"HOME": str(folder), "NO_COLOR": "1"} | (env or {})
        self.becoming = becoming or {}  # options of Popen: whose processes these are
        self.python = python
        self.program = ["-m", "runyard"]
        self.process: subprocess.Popen[bytes] | None = None
        self.key = ""

    # the server

    def spawn(self) -> subprocess.Popen[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        argv = [self.python, *self.program, "server", "--host", "127.0.0.1"]
        argv += ["--port", str(self.port), "--data-dir", str(self.data)]
        argv += [str(flag) for flag in self.flags]
        with open(self.folder / "server.out", "ab") as out:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.env,
                **self.becoming,
            )
        return self.process

    def start(self, seconds: float = 100) -> RunningYard:
        self.spawn()
        until(self._started, seconds, lambda: self.said()[-2000:])
        self.key = (self.data / "admin.key").read_text().strip()
        return self

    def _started(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the server ended: {self.said()[-2000:]}"
        return self.up()

    def up(self) -> bool:
        try:
            return self.call("GET", "/healthz", timeout=2).ok
        except (OSError, http.client.HTTPException):  # also one that dies while it answers
            return False

    def said(self) -> str:
        try:
            return (self.folder / "server.out").read_text(errors="replace")
        except OSError:
            return ""

    def kill9(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)

    def terminate(self, seconds: float = 60) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def stop(self) -> None:
        """End it with everything it runs; by force if that takes too long."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(20)
                except subprocess.TimeoutExpired:
                    self.kill9()
        self.process = None
        self._end_keeper()

    def _end_keeper(self) -> None:
        """What a killed server left: the keeper of its data directory, and all below it."""
        for pid in keepers_of(self.data):
            for child in [*descendants(pid), pid]:
                try:
                    os.kill(child, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    # HTTP

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        timeout: float = 30,
        data: bytes | None = None,
    ) -> Answer:
        if body is not None:
            data = json.dumps(body).encode()
        head = {"Content-Type": "application/json"}
        if self.key:
            head["Authorization"] = f"Bearer {self.key}"
        head |= headers or {}
        head = {name: value for name, value in head.items() if value}
        request = urllib.request.Request(self.url + path, data, head, method=method)
        try:
            with _OPENER.open(request, timeout=timeout) as reply:
                return Answer(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def api(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call(method, BASE + path, body, **options)

    def ask(self, path: str) -> Any:
        answer = self.api("GET", path)
        assert answer.ok, f"GET {path}: {answer.status} {answer.data[:300]!r}"
        return answer.body

    # jobs

    def submit(self, command: Any, **fields: Any) -> str:
        answer = self.api("POST", "/jobs", {"name": "test", **SMALL, "command": command, **fields})
        assert answer.status == 201, f"{answer.status} {answer.data[:500]!r}"
        return str(answer.body["job_id"])

    def job(self, ref: str) -> dict[str, Any]:
        return self.ask(f"/jobs/{ref}")

    def status(self, ref: str) -> str:
        return str(self.job(ref)["status"])

    def wait(self, ref: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            now = self.job(ref)
            if now["status"] in states:
                return now
            unexpected = now["status"] in TERMINAL and set(states) <= TERMINAL
            assert not unexpected, f"{ref} is {now['status']}, not {states}: {now['reason']}"
            return None

        return until(reached, seconds, lambda: f"{ref} is {self.job(ref)} and not {states}")

    def attempts(self, ref: str) -> list[dict[str, Any]]:
        return self.ask(f"/jobs/{ref}/attempts")

    def logs(self, ref: str, **query: Any) -> list[str]:
        asked = urllib.parse.urlencode({"tail": 1000, **query})
        return self.ask(f"/jobs/{ref}/logs?{asked}")["logs"]

    def cancel(self, ref: str, wait: float = 60) -> Answer:
        return self.api("POST", f"/jobs/{ref}/cancel?wait={wait}", timeout=wait + 20)

    # CLI

    def cli(self, *args: object, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        env = self.env | {"RUNYARD_URL": self.url, "RUNYARD_API_KEY": self.key}
        env["RUNYARD_DATA_DIR"] = str(self.data)
        argv = [self.python, "-m", "runyard", *map(str, args)]
        return subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.folder,
            check=False,
            **self.becoming,
        )


# processes, seen in /proc


def stat(pid: int) -> tuple[str, int] | None:
    """(state, parent) of a process; None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # a name may be cut
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1])


def alive(pid: int) -> bool:
    """A zombie counts as dead."""
    now = stat(pid)
    return now is not None and now[0] not in "ZX"


def all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        now = stat(pid)
        if now:
            children.setdefault(now[1], []).append(pid)
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def keepers_of(data_dir: Path) -> list[int]:
    """Keeper processes started for exactly this data directory."""
    found = []
    for pid in all_pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_keeper = any(word.endswith(b"keeper_main.py") for word in words)
        if is_keeper and str(data_dir).encode() in words and alive(pid):
            found.append(pid)
    return found


def kill9(record: dict[str, Any] | None) -> None:
    """Exactly the recorded process."""
    assert record is not None
    pidfd = identity.open_verified(record)
    assert pidfd is not None, f"{record} is gone already"
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def keeper_pid(data_dir: Path) -> int:
    """Supervisors are forks of the keeper and look like it, but for their name, which a new one
    does not have yet."""
    found = set(keepers_of(data_dir))
    forks = {pid for pid in found if (now := stat(pid)) and now[1] in found}
    [pid] = [pid for pid in found - forks if _name(pid) == "runyard-keeper"]
    return pid


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


class Truth:
    """What really lives, told by the kernel: each process of a workload holds the write end of one
    FIFO, so end-of-file means that all of them are dead."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.data = b""

    def held(self) -> bool:
        while True:
            try:
                data = os.read(self._fd, 65536)
            except BlockingIOError:
                return True
            if not data:
                return False
            self.data += data

    def close(self) -> None:
        os.close(self._fd)
