"""The promises of every executor, kept by the one for Ray."""

from __future__ import annotations

import pytest

from ray_cluster import await_nothing_left
from ray_yard import RayPlace
from runyard.testing.executor_contract import ExecutorContract

# Thirty promises, seconds each: the same are kept by local and docker in every run.
pytestmark = pytest.mark.slow


class TestRayExecutor(ExecutorContract):
    @pytest.fixture
    def place(self, tmp_path, ray_cluster):
        yield RayPlace(tmp_path, ray_cluster)
        await_nothing_left(ray_cluster, [])
