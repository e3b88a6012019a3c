"""Jobs of several nodes: where their slices go, and what they say while they wait."""

from __future__ import annotations

import pytest

from runyard.domain.resources import Gpu, GpuGrant
from runyard.domain.scheduling.view import Reservation
from runyard.domain.slices import Gang


def gpus_of(name, count, model="NVIDIA H100", **more):
    return [Gpu(index, f"{name}-{index}", model, 80000, **more) for index in range(count)]


@pytest.fixture
def cluster(scene):
    """Adds nodes of an executor: `cluster(3, gpus=4)`."""

    def make(count, *, gpus=0, model="NVIDIA H100", first=0, cluster="east", **more):
        for number in range(first, first + count):
            name = f"ray-{number}"
            scene.machine(
                name,
                gpus=gpus_of(name, gpus, model),
                machine_id=name,
                executors=("ray",),
                node=f"n{number}",
                address=f"10.0.0.{number}",
                cluster=cluster,
                **more,
            )
        return scene

    return make


def busy(scene, name, gpus, **more):
    """An attempt that holds the first GPUs of a node."""
    grants = tuple(GpuGrant(f"{name}-{index}", index, 1000) for index in range(gpus))
    scene.running(on=name, gpus=grants, **more)


def test_spread_takes_a_machine_for_each_slice(cluster):
    """R34"""
    scene = cluster(3, gpus=4)
    scene.waiting(gpu=1, gang=Gang(2, "spread"))
    [placed] = scene.decide().placements
    assert [part.index for part in placed.slices] == [0, 1]
    assert len({part.machine_id for part in placed.slices}) == 2
    assert placed.executor == "ray"
    assert placed.machine_id == placed.slices[0].machine_id


def test_pack_puts_slices_side_by_side_without_sharing(cluster):
    scene = cluster(3, gpus=4)
    scene.waiting(gpu=2, gang=Gang(2, "pack"))
    [placed] = scene.decide().placements
    first, second = placed.slices
    assert first.machine_id == second.machine_id
    assert not {gpu.uuid for gpu in first.gpus} & {gpu.uuid for gpu in second.gpus}
    assert placed.gpus == first.gpus + second.gpus


def test_pack_fills_the_machine_that_is_already_in_use(cluster):
    """Whole machines stay for those who need them."""
    scene = cluster(3, gpus=4)
    busy(scene, "ray-1", 2)
    scene.waiting(gpu=1, gang=Gang(2, "pack"))
    [placed] = scene.decide().placements
    assert {part.node for part in placed.slices} == {"n1"}


def test_the_first_slice_has_the_port_where_the_ranks_meet(cluster):
    scene = cluster(2)
    scene.waiting(ports=1, gang=Gang(2, "spread"))
    [placed] = scene.decide().placements
    assert [len(part.ports) for part in placed.slices] == [2, 1]
    assert placed.ports == placed.slices[0].ports


def test_a_gang_of_one_on_the_own_machine_has_it_too(scene):
    scene.machine("m1")
    scene.waiting(ports=1, gang=Gang(1))
    [placed] = scene.decide().placements
    assert placed.slices == ()
    assert len(placed.ports) == 2


def test_nothing_is_taken_when_not_all_slices_fit(cluster):
    """R34: and a smaller job behind it starts with what is free."""
    scene = cluster(2, gpus=4)
    busy(scene, "ray-0", 1)
    large, _ = scene.waiting(gpu=4, gang=Gang(2, "spread"), priority="high")
    _, [small] = scene.waiting(gpu=1)
    decision = scene.decide()
    assert [placed.job_id for placed in decision.placements] == [small]
    reason = decision.waits[large]
    assert reason.code == "not_enough_nodes"
    assert reason.params == {
        "wanted": 2,
        "free": 1,
        "total": 2,
        "each": {"gpu": 4, "cpu": 1, "memory": 1},
    }


def test_too_few_nodes_for_ever(cluster):
    """R34: found out by ourselves, without asking the cluster."""
    scene = cluster(3, gpus=4)
    shape, _ = scene.waiting(gpu=1, gang=Gang(4, "spread"))
    reason = scene.decide().waits[shape]
    assert (reason.code, reason.params["resource"]) == ("never_fits", "node")
    assert (reason.params["wanted"], reason.params["largest"]) == (4, 3)
    assert reason.params["each"]["gpu"] == 1


def test_a_slice_larger_than_every_node_is_told_as_such(cluster):
    scene = cluster(3, gpus=4)
    shape, _ = scene.waiting(gpu=8, gang=Gang(2, "spread"))
    reason = scene.decide().waits[shape]
    assert reason.code == "never_fits"
    assert reason.params == {"resource": "gpu", "wanted": 8, "largest": 4}


def test_packed_slices_count_all_that_one_node_holds(cluster):
    scene = cluster(1, gpus=4)
    shape, _ = scene.waiting(gpu=1, gang=Gang(5, "pack"))
    assert scene.decide().waits[shape].params["largest"] == 4
    scene.waiting(gpu=1, gang=Gang(4, "pack"))
    assert len(scene.decide().placements) == 1


def test_the_own_machine_is_one_node_however_large(scene):
    scene.machine("m1", cpu=64)
    shape, _ = scene.waiting(gang=Gang(2, "pack"))
    reason = scene.decide().waits[shape]
    assert reason.code == "never_fits"
    assert (reason.params["wanted"], reason.params["largest"]) == (2, 1)


def test_fenced_gpus_are_waited_for_not_given_up(cluster, scene):
    cluster(1, gpus=2)
    fenced = gpus_of("ray-9", 2, fenced=True)
    scene.machine("ray-9", gpus=fenced, executors=("ray",), node="n9", cluster="east")
    shape, _ = scene.waiting(gpu=2, gang=Gang(2, "spread"))
    assert scene.decide().waits[shape].code == "not_enough_nodes"


def test_gpu_type_is_the_same_on_every_node(cluster):
    scene = cluster(1, gpus=4, model="NVIDIA A100")
    cluster(2, gpus=4, model="NVIDIA H100", first=5)
    _, [job] = scene.waiting(gpu=1, gpu_type="H100", gang=Gang(2, "spread"))
    shape, _ = scene.waiting(gpu=1, gpu_type="A100", gang=Gang(2, "spread"))
    absent, _ = scene.waiting(gpu=1, gpu_type="V100", gang=Gang(2, "spread"))
    decision = scene.decide()
    [placed] = decision.placements
    assert placed.job_id == job
    assert {part.node for part in placed.slices} == {"n5", "n6"}
    assert decision.waits[shape].params["each"]["gpu_type"] == "A100"
    assert decision.waits[absent].code == "gpu_type_absent"


def test_slices_never_lie_in_two_clusters(cluster):
    scene = cluster(1, gpus=1)
    cluster(1, gpus=1, first=5, cluster="west")
    shape, _ = scene.waiting(gpu=1, gang=Gang(2, "spread"))
    assert scene.decide().waits[shape].code == "never_fits"


def test_a_drained_node_takes_no_slice(cluster):
    scene = cluster(2, gpus=1)
    cluster(1, gpus=1, first=5, drained=True)
    shape, _ = scene.waiting(gpu=1, gang=Gang(3, "spread"))
    reason = scene.decide().waits[shape]
    assert (reason.code, reason.params["free"]) == ("not_enough_nodes", 2)


def test_a_job_says_which_executor_and_auto_takes_the_better_place(cluster):
    """R34: local and ray on one server."""
    scene = cluster(1, gpus=4)
    scene.machine("m1", cpu=8)
    _, [here] = scene.waiting(executor="local")
    _, [there] = scene.waiting(executor="ray")
    _, [wants_gpu] = scene.waiting(gpu=1)
    _, [plain] = scene.waiting(cpu=2)
    placed = {one.job_id: one for one in scene.decide().placements}
    assert (placed[here].executor, placed[here].node_id) == ("local", "m1")
    assert (placed[there].executor, placed[there].slices[0].node) == ("ray", "n0")
    assert placed[wants_gpu].executor == "ray"
    assert placed[plain].executor == "local"  # away from GPUs others may need


def test_an_executor_without_nodes_is_not_reachable(scene):
    scene.machine("m1")
    shape, _ = scene.waiting(executor="ray", gang=Gang(2, "spread"))
    reason = scene.decide().waits[shape]
    assert (reason.code, reason.params) == ("executor_unavailable", {"executor": "ray"})


def test_a_starving_gang_keeps_all_its_nodes(cluster):
    """Nobody behind it takes what it lacks, on any of them; others go elsewhere."""
    scene = cluster(3, gpus=2)
    busy(scene, "ray-0", 1, expected_s=500.0, started_at=600.0)
    busy(scene, "ray-1", 1, expected_s=500.0, started_at=600.0)
    busy(scene, "ray-2", 1)
    large, [starving] = scene.waiting(gpu=2, gang=Gang(2, "spread"), queued_at=0.0)
    small, smalls = scene.waiting(gpu=1, count=3)
    decision = scene.decide()
    assert [placed.job_id for placed in decision.placements] == smalls[:1]
    assert decision.placements[0].slices[0].node == "n2"
    kept = [one for one in decision.reservations if one.job_id == starving]
    assert {one.node_id for one in kept} == {"ray-0", "ray-1"}
    assert decision.waits[large].code == "not_enough_nodes"
    assert decision.waits[small].code == "reserved"


def test_a_kept_gang_stays_where_it_is_while_its_nodes_are_good(cluster):
    scene = cluster(3, gpus=2)
    for name in ("ray-0", "ray-1", "ray-2"):
        busy(scene, name, 1)
    shape, [starving] = scene.waiting(gpu=2, gang=Gang(2, "spread"), queued_at=0.0)
    request = scene.shapes[0].first_request
    scene.reservations = tuple(
        Reservation(starving, "job-1", shape, name, name, request, (f"{name}-0", f"{name}-1"))
        for name in ("ray-1", "ray-2")
    )
    assert set(scene.decide().reservations) == set(scene.reservations)


def test_a_packed_gang_keeps_room_for_all_its_slices(cluster):
    scene = cluster(1, gpus=4)
    busy(scene, "ray-0", 1)
    scene.waiting(gpu=2, gang=Gang(2, "pack"), queued_at=0.0)
    small, _ = scene.waiting(gpu=1)
    decision = scene.decide()
    assert decision.placements == ()
    [kept] = decision.reservations
    assert (kept.slices, len(kept.gpu_uuids)) == (2, 4)
    assert decision.waits[small].code == "reserved"


def test_slots_count_attempts_not_slices(cluster):
    scene = cluster(2, gpus=4)
    _, jobs = scene.waiting(gpu=1, gang=Gang(2, "spread"), count=3)
    decision = scene.decide(max_concurrent=2)
    assert [placed.job_id for placed in decision.placements] == jobs[:2]


def test_spread_gangs_use_every_machine_to_the_full(cluster):
    """Six gangs of two nodes have room on three machines of four GPUs, if none is filled first."""
    scene = cluster(3, gpus=4)
    _, jobs = scene.waiting(gpu=1, gang=Gang(2, "spread"), count=6)
    assert [placed.job_id for placed in scene.decide().placements] == jobs
