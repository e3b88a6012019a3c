"""Containers of a real engine keep every promise of the executor port."""

import pytest

from executor_places import DockerPlace
from runyard.testing.executor_contract import ExecutorContract

pytestmark = pytest.mark.root


class TestDockerExecutor(ExecutorContract):
    @pytest.fixture
    def place(self, tmp_path, docker_engine):
        return DockerPlace(tmp_path, docker_engine)
