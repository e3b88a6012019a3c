"""One cluster of three nodes for all tests here, and servers that run jobs in it."""

from __future__ import annotations

import pytest

from ray_cluster import RayCluster, await_nothing_left, has_ray
from ray_yard import RayYard

GROUP = "ray"  # one xdist worker runs all of them: the cluster is large


def pytest_collection_modifyitems(items):
    for item in items:
        if "integration/ray/" in str(item.path):
            item.add_marker(pytest.mark.xdist_group(GROUP))
            item.add_marker(pytest.mark.timeout(300))  # a cluster on a busy machine is slow


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


@pytest.fixture
def ray_yard(make_ray_yard):
    return make_ray_yard().start()
