"""The promises of every executor, kept by the one for Ray."""

from __future__ import annotations

import os
import secrets
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from ray_cluster import RayCluster, await_nothing_left, marked
from runyard.executors.ray import RayExecutor, RayOptions
from runyard.ray_bridge import names
from runyard.testing.executor_contract import ExecutorContract
from runyard.testing.executor_place import ExecutorPlace


class RayPlace(ExecutorPlace):
    """An owner of its own, so that attempts of the same name in other tests are others'."""

    def __init__(self, folder: Path, cluster: RayCluster) -> None:
        super().__init__(folder)
        self.cluster = cluster
        self.owner = secrets.token_hex(4)

    def make(self):
        options = RayOptions(address=self.cluster.address, token_path=str(self.cluster.token_path))
        return RayExecutor(self.folder / "data", self.owner, options)

    def living(self, attempt_id):
        return [str(pid) for pid in marked(attempt_id)] + list(self.cluster.actors())

    def kill_watcher(self, attempt_id):
        pid = self.cluster.actors()[names.actor_name(attempt_id, 0)]
        os.kill(pid, signal.SIGKILL)

    def launch(self, number, script, **changes):
        return replace(super().launch(number, script), cpu_milli=10, **changes)


class TestRayExecutor(ExecutorContract):
    @pytest.fixture
    def place(self, tmp_path, ray_cluster):
        made = RayPlace(tmp_path, ray_cluster)
        yield made
        await_nothing_left(ray_cluster, [])
