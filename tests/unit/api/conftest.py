"""One server for the tests of a file, and fresh ones for tests that change it for good."""

import pytest
from served import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(tmp_path_factory.mktemp("served"))
    yield made
    made.close()


@pytest.fixture
def make_served(tmp_path):
    made = []

    def make(**settings):
        made.append(Served(tmp_path / f"served{len(made)}", **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(autouse=True)
def _calm(request):
    """No test inherits running jobs or a paused queue from another of its file."""
    yield
    if "served" not in request.fixturenames:
        return
    served = request.getfixturevalue("served")
    served.executor.stubborn = False
    served.api("POST", "/system/start-queue")
    served.api("POST", "/jobs/cancel", {"all": True, "force": True}, wait=10)
