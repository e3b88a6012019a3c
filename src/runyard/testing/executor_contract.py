"""The executor contract: the promises of executors/base.py as tests, for any executor.

A test file inherits `ExecutorContract` and gives a fixture `place`: an ExecutorPlace (see
executor_place.py) with a folder that attempts see at the same path.

    class TestMine(ExecutorContract):
        @pytest.fixture
        def place(self, tmp_path):
            return MyPlace(tmp_path)
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runyard.testing.executor_contract_restarts import RestartContract
from runyard.testing.executor_contract_runs import RunContract
from runyard.testing.executor_contract_stops import StopContract
from runyard.testing.executor_contract_sweeps import SweepContract
from runyard.testing.executor_place import ExecutorPlace, Serving


class ExecutorContract(RunContract, StopContract, RestartContract, SweepContract):
    """All of it. When a test ends, nothing of its attempts may be left."""

    @pytest.fixture
    def serving(self, place: ExecutorPlace) -> Iterator[Serving]:
        made = Serving(place)
        try:
            yield made
        finally:
            made.close()
        for attempt_id in made.launched:
            assert place.living(attempt_id) == []
