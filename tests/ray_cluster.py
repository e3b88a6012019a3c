"""A real Ray cluster of several nodes on this machine, and a driver to look into it from outside.

Nodes are `ray start` processes on addresses of the loopback, each in a session of its own, by
which they are ended: never by name. GPUs are only counted, so that none is needed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from yards import alive, all_pids, free_port, stat, until

HERE = Path(__file__).parent
GPUS = 4
CPUS = 8
_START_S = 90
_OPTIONS = ("--disable-usage-stats", "--include-log-monitor=false")


def has_ray() -> bool:
    return importlib.util.find_spec("ray") is not None


def session_members(leader: int) -> list[int]:
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and alive(pid):
                found.append(pid)
    return found


def end_session(leader: int) -> None:
    def gone() -> bool:
        left = session_members(leader)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    until(gone, 60, lambda: f"left in session {leader}: {session_members(leader)}")


class RayNode:
    def __init__(self, address: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.address = address
        self.process = process
        self.log = log

    @property
    def raylet(self) -> int:
        return self._only("raylet")

    @property
    def gcs(self) -> int:
        return self._only("gcs_server")

    def _only(self, name: str) -> int:
        """Not a fork of it that is about to become something else."""
        named = [pid for pid in session_members(self.process.pid) if _comm(pid) == name]
        [pid] = [pid for pid in named if (stat(pid) or ("", 0))[1] not in named]
        return pid

    def started(self) -> bool:
        assert not self.process.poll(), self.log.read_text()[-2000:]
        return b"Ray runtime started" in self.log.read_bytes()

    def end(self) -> None:
        end_session(self.process.pid)
        self.process.wait(60)


class RayCluster:
    """`first` is the last number of the head's address, so that clusters do not meet; `python`
    has the Ray of its nodes; with `dashboard_port` the head takes jobs of Ray's own; unless
    `watched`, nobody ends a node because one of its processes died."""

    def __init__(
        self,
        *,
        first: int = 11,
        token: bool = True,
        head_env: Any = (),
        python: str = sys.executable,
        dashboard_port: int = 0,
        watched: bool = True,
    ) -> None:
        self._watched = ("--block",) if watched else ()
        self.python = python
        self.dashboard_port = dashboard_port
        self.folder = Path(tempfile.mkdtemp(prefix="rytest-", dir="/tmp"))
        self.port = free_port()
        self.head_address = f"127.0.0.{first}"
        self.address = f"{self.head_address}:{self.port}"
        self.token_path = self.folder / "token"
        self.token_path.touch(0o600)
        self.token_path.write_text(secrets.token_hex(32))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "CUDA_"))}
        self.env |= {
            "RAY_AUTH_MODE": "token" if token else "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_process_group_cleanup_enabled": "1",
            # A node that refuses connections is called dead after 5 s instead of 15, which is
            # still later than our own bridge sees it; one that only says nothing, as before.
            "RAY_health_check_period_ms": "1000",
        }
        if token:
            self.env["RAY_AUTH_TOKEN_PATH"] = str(self.token_path)
        self.env |= dict(head_env)
        self.nodes: dict[str, RayNode] = {}
        self._next = first
        self._driver: subprocess.Popen[str] | None = None

    # life

    def start(self, nodes: int = 3) -> RayCluster:
        """One after the other: nodes of one machine that start at once take the same sockets."""
        for _ in range(nodes):
            self.add_node()
        return self

    def start_head(self) -> RayNode:
        """The head again, after it died."""
        self._next = int(self.head_address.rpartition(".")[2])
        return self.add_node()

    def add_node(self, *, gpus: int = GPUS, visible: str | None = None, **env: str) -> RayNode:
        address = f"127.0.0.{self._next}"
        self._next += 1
        is_head = address == self.head_address
        number = len(list(self.folder.glob("*.log")))
        log = self.folder / f"{number}.log"
        options = [
            *("--head", f"--port={self.port}", f"--temp-dir={self.folder}/ray"),
            f"--include-dashboard={'true' if self.dashboard_port else 'false'}",
            f"--dashboard-port={self.dashboard_port or free_port()}",
        ]
        if not is_head:
            options = [f"--address={self.address}"]
        environment = self.env | env
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [
                    *(self.python, "-m", "ray.scripts.scripts", "start", *_OPTIONS),
                    *(*self._watched, *options),
                    *(f"--node-ip-address={address}", f"--num-cpus={CPUS}"),
                    *(f"--num-gpus={gpus}", "--object-store-memory=100000000"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        node = self.nodes[address] = RayNode(address, process, log)
        until(node.started, _START_S)
        return node

    def end_node(self, address: str) -> None:
        self.nodes.pop(address).end()

    def stop(self) -> None:
        self._end_driver()
        for node in self.nodes.values():
            node.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    # a look from outside

    def drive(self, code: str) -> Any:
        """What an expression gives in a process that has joined the cluster with `ray`."""
        for _ in range(2):  # Ray ends a driver that has lost its cluster
            if self._driver is None or self._driver.poll() is not None:
                self._end_driver()
                self._driver = self._start_driver()
            driver = self._driver
            assert driver.stdin is not None
            assert driver.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                driver.stdin.write(json.dumps(code) + "\n")
                driver.stdin.flush()
                line = driver.stdout.readline()
                if line:
                    answer = json.loads(line)
                    assert "error" not in answer, answer["error"]
                    return answer["value"]
        raise AssertionError("the driver does not answer")

    def _start_driver(self) -> subprocess.Popen[str]:
        with open(self.folder / "driver.err", "ab") as errors:
            return subprocess.Popen(
                [self.python, str(HERE / "ray_driver.py"), self.address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.env,
                text=True,
            )

    def _end_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.kill()
            driver.communicate()

    def free_gpus(self) -> float:
        return float(self.drive("ray.available_resources().get('GPU', 0)"))

    def all_gpus(self) -> float:
        return float(self.drive("ray.cluster_resources().get('GPU', 0)"))

    def actors(self) -> dict[str, int]:
        """Our actors that live: name -> pid."""
        return dict(self.drive("actors()"))

    def groups(self) -> list[str]:
        return list(self.drive("groups()"))


def marked(attempt_id: str) -> list[int]:
    """Living processes that carry the marker of an attempt."""
    marker = f"RUNYARD_ATTEMPT_ID={attempt_id}".encode()
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if marker in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and alive(pid):
                found.append(pid)
    return found


def await_nothing_left(cluster: RayCluster, attempt_ids: list[str], seconds: float = 60) -> None:
    """What every test ends with: no process, no actor, no placement group, all GPUs free."""
    for attempt_id in attempt_ids:
        until(lambda one=attempt_id: not marked(one), seconds, lambda one=attempt_id: marked(one))
    until(lambda: not cluster.actors(), seconds, cluster.actors)
    until(lambda: not cluster.groups(), seconds, cluster.groups)
    until(lambda: cluster.free_gpus() == cluster.all_gpus(), seconds, cluster.free_gpus)


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
