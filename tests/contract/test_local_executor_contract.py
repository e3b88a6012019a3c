"""Processes of this machine keep every promise of the executor port."""

import pytest

from executor_places import LocalPlace
from runyard.testing.executor_contract import ExecutorContract


class TestLocalExecutor(ExecutorContract):
    @pytest.fixture
    def place(self, tmp_path):
        return LocalPlace(tmp_path)
