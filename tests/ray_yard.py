"""Servers that run jobs in a Ray cluster, and an executor of their kind for contracts."""

from __future__ import annotations

import os
import secrets
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray_cluster import RayCluster, marked
from runyard.executors.base import Launch
from runyard.executors.ray import RayExecutor, RayOptions
from runyard.ray_bridge import names
from runyard.supervisor import journal, process_table
from runyard.testing.executor_place import ExecutorPlace
from yards import RunningYard, Truth, descendants, stat, until


class RayYard(RunningYard):
    """A server that joins the cluster."""

    def __init__(
        self,
        folder: Path,
        cluster: RayCluster,
        *flags: object,
        env: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        own = {"RAY_AUTH_TOKEN_PATH": str(cluster.token_path), **(env or {})}
        flags = ("--executor", "ray", "--ray-address", cluster.address, *flags)
        super().__init__(folder, *flags, env=own, **options)
        self.cluster = cluster

    def attempt_ids(self) -> list[str]:
        folder = self.data / "attempts"
        return [path.name for path in folder.iterdir()] if folder.exists() else []

    def bridge(self) -> int:
        """The pid of its ray-bridge."""

        def found() -> list[int]:
            assert self.process is not None
            named = [pid for pid in descendants(self.process.pid) if _is_bridge(pid)]
            # Not a fork of it that is about to become one of its probes.
            return [pid for pid in named if (stat(pid) or ("", 0))[1] not in named]

        [pid] = until(found, 90)
        return int(pid)


def _is_bridge(pid: int) -> bool:
    try:
        return b"bridge_main.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def holding(truth: Truth) -> str:
    """A tree that ignores SIGTERM: main, its child, and one in a session of its own. These
    three and no more from the moment it said that it is up: they can be compared."""
    child = f"exec 9>{truth.path}; trap '' TERM; exec sleep 600"
    return (
        f"exec 8>{truth.path}; trap '' TERM; setsid sh -c \"{child}\" & "
        f'sh -c "{child}" & echo up; exec sleep 600'
    )


def kill_a_node_of(yard: RayYard, ref: str) -> str:
    """kill -9 of Ray on one of the nodes that the first attempt runs on, never the head; its
    address."""
    addresses = {part["address"] for part in yard.attempts(ref)[0]["slices"]}
    victim = max(addresses - {yard.cluster.head_address})
    os.kill(yard.cluster.nodes[victim].raylet, signal.SIGKILL)
    return str(victim)


class RayPlace(ExecutorPlace):
    """An owner of its own, so that attempts of the same name in other tests are others'."""

    def __init__(self, folder: Path, cluster: RayCluster) -> None:
        super().__init__(folder)
        self.cluster = cluster
        self.owner = secrets.token_hex(4)

    def make(self) -> RayExecutor:
        options = RayOptions(address=self.cluster.address, token_path=str(self.cluster.token_path))
        return RayExecutor(self.folder / "data", self.owner, options)

    def living(self, attempt_id: str) -> list[str]:
        """Its actor stays without a server, with what was not copied yet: the fixture looks."""
        return [str(pid) for pid in marked(attempt_id)]

    def kill_watcher(self, attempt_id: str) -> None:
        pid = self.cluster.actors()[names.actor_name(attempt_id, 0)]
        os.kill(pid, signal.SIGKILL)

    def freeze_watcher(self, attempt_id: str) -> None:
        """Its supervisor, which is on this machine too."""
        mirrored = self.folder / "data" / "attempts" / attempt_id / "slices" / "0"
        supervisor = journal.read(str(mirrored)).supervisor
        assert supervisor is not None
        os.kill(supervisor["pid"], signal.SIGSTOP)
        until(lambda: process_table.describe(supervisor["pid"])["state"] == "T", 30)

    def launch(self, number: int, script: str, **changes: Any) -> Launch:
        return replace(super().launch(number, script), cpu_milli=10, **changes)
