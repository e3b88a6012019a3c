"""One cluster of three nodes for all tests here, and servers that run jobs in it."""

from __future__ import annotations

import pytest

from ray_cluster import RayCluster, await_nothing_left, has_ray
from ray_yard import RayYard
from yards import TERMINAL


def pytest_collection_modifyitems(items):
    for item in items:
        if "integration/ray/" in str(item.path) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(300))  # on a busy machine a cluster is slow


@pytest.fixture(scope="session")
def ray_cluster():
    if not has_ray():
        pytest.skip("Ray is not installed")
    cluster = RayCluster()
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def make_ray_yard(tmp_path, ray_cluster):
    """Make (not yet start) servers on folders of this test. When it ends, nothing is left."""
    made: list[RayYard] = []

    def make(*flags, **options):
        yard = RayYard(tmp_path / f"yard{len(made)}", ray_cluster, *flags, **options)
        made.append(yard)
        return yard

    yield make
    for yard in made:
        yard.stop()
    for yard in made:
        await_nothing_left(ray_cluster, yard.attempt_ids())


@pytest.fixture(scope="module")
def server_of_the_module(tmp_path_factory, ray_cluster):
    yard = RayYard(tmp_path_factory.mktemp("yard"), ray_cluster)
    yield yard.start()
    yard.stop()


@pytest.fixture
def ray_yard(server_of_the_module):
    """A running server, the same for the tests of a file. When one ends, nothing of it is left."""
    yard = server_of_the_module
    before = set(yard.attempt_ids())
    yield yard
    for row in yard.ask("/jobs?limit=200"):
        if row["status"] not in TERMINAL:
            yard.api("POST", f"/jobs/{row['job_id']}/force-kill")
            yard.wait(row["job_id"], *TERMINAL, seconds=60)  # it may have ended by itself
    await_nothing_left(yard.cluster, sorted(set(yard.attempt_ids()) - before))
