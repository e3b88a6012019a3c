"""Single passes: order, backfill, limits, several machines, and the reason for every wait."""

from __future__ import annotations

from runyard.domain import reasons
from runyard.domain.resources import GpuGrant, Holder
from runyard.domain.scheduling.gates import ClosedGate


def started(decision):
    return [placement.job_id for placement in decision.placements]


def why(decision, shape):
    reason = decision.waits[shape]
    return reason.code, dict(reason.params)


def test_high_before_medium_before_low_and_fifo_inside(scene):
    """R10."""
    scene.machine(cpu=100, memory=100)
    scene.waiting(priority="low", queued_at=1.0)
    scene.waiting(priority="medium", queued_at=3.0)
    scene.waiting(priority="high", queued_at=4.0)
    scene.waiting(priority="medium", queued_at=2.0, cpu=2)
    assert started(scene.decide()) == [3, 4, 2, 1]


def test_equal_times_go_by_id(scene):
    scene.machine(cpu=100, memory=100)
    scene.waiting(queued_at=5.0, cpu=2)
    scene.waiting(queued_at=5.0, cpu=1)
    assert started(scene.decide()) == [1, 2]


def test_jobs_of_two_shapes_take_turns_by_time(scene):
    scene.machine(cpu=2, memory=100)
    _, first = scene.waiting(count=2, queued_at=1.0)
    _, second = scene.waiting(count=2, queued_at=2.0, memory=2)
    assert started(scene.decide()) == first
    assert not set(second) & set(started(scene.decide()))


def test_a_job_that_does_not_fit_does_not_block_a_smaller_one(scene):
    """Backfill."""
    scene.machine(cpu=4)
    scene.running(cpu=2)
    large, _ = scene.waiting(cpu=4, queued_at=999.0)
    _, small = scene.waiting(cpu=1, queued_at=999.5)
    decision = scene.decide()
    assert started(decision) == small
    assert why(decision, large) == (
        reasons.NOT_ENOUGH,
        {"resource": "cpu", "wanted": 4, "free": 2, "total": 4},
    )


def test_a_waiting_gpu_job_reserves_nothing_a_cpu_job_could_use(scene, make_gpus):
    scene.machine(cpu=4, gpus=make_gpus(1))
    scene.running(cpu=1, gpus=[GpuGrant("GPU-0", 0, 1000)])
    gpu_job, _ = scene.waiting(cpu=2, gpu=1, queued_at=990.0)
    _, cpu_jobs = scene.waiting(count=3, cpu=1, queued_at=999.0)
    decision = scene.decide(starvation_s=300.0)
    assert started(decision) == cpu_jobs
    assert why(decision, gpu_job)[1]["resource"] == "gpu"


def test_max_concurrent_counts_everything_that_runs(scene):
    """R11."""
    scene.machine(cpu=100, memory=100)
    scene.running()
    shape, jobs = scene.waiting(count=3)
    decision = scene.decide(max_concurrent=2)
    assert started(decision) == jobs[:1]
    assert why(decision, shape) == (reasons.MAX_CONCURRENT, {"limit": 2, "running": 2})


def test_full_slots_still_tell_what_can_never_run(scene):
    scene.machine(cpu=4)
    scene.running()
    never, _ = scene.waiting(cpu=5)
    waits, _ = scene.waiting(cpu=1)
    decision = scene.decide(max_concurrent=1)
    assert why(decision, never)[0] == reasons.NEVER_FITS
    assert why(decision, waits)[0] == reasons.MAX_CONCURRENT


def test_array_limit(scene):
    scene.machine(cpu=100, memory=100)
    scene.running(array_id="a")
    limited, jobs = scene.waiting(count=4, array_id="a", array_limit=3)
    _, free = scene.waiting(count=2, array_id="b")
    decision = scene.decide()
    assert started(decision) == jobs[:2] + free
    assert why(decision, limited) == (reasons.ARRAY_LIMIT, {"limit": 3, "running": 3})


def test_paused_dispatching_starts_nothing(scene):
    scene.machine()
    shape, _ = scene.waiting()
    decision = scene.decide(dispatching=False)
    assert started(decision) == []
    assert why(decision, shape)[0] == reasons.DISPATCH_PAUSED


def test_a_drained_machine_takes_nothing(scene):
    scene.machine("m1", drained=True)
    shape, _ = scene.waiting()
    assert why(scene.decide(), shape)[0] == reasons.NODE_DRAINED
    scene.machine("m2")
    assert [p.node_id for p in scene.decide().placements] == ["m2"]


def test_no_machine_at_all(scene):
    shape, _ = scene.waiting()
    assert why(scene.decide(), shape)[0] == reasons.NO_NODE


def test_executor_nobody_has(scene):
    scene.machine("m1", executors=("local",))
    shape, _ = scene.waiting(executor="docker")
    assert why(scene.decide(), shape) == (reasons.EXECUTOR_UNAVAILABLE, {"executor": "docker"})
    scene.machine("m2", executors=("local", "docker"))
    assert [p.node_id for p in scene.decide().placements] == ["m2"]


def test_machine_without_any_executor_takes_nothing(scene):
    scene.machine(executors=())
    shape, _ = scene.waiting()
    assert why(scene.decide(), shape)[0] == reasons.EXECUTOR_UNAVAILABLE


def test_never_fits_names_the_resource_and_the_largest(scene, make_gpus):
    scene.machine("m1", cpu=8, memory=16)
    scene.machine("m2", cpu=4, memory=32, gpus=make_gpus(2))
    cpu, _ = scene.waiting(cpu=9)
    memory, _ = scene.waiting(memory=33)
    gpu, _ = scene.waiting(gpu=3)
    ports, _ = scene.waiting(ports=11)
    split, _ = scene.waiting(cpu=8, memory=32)
    decision = scene.decide()
    assert why(decision, cpu) == (
        reasons.NEVER_FITS,
        {"resource": "cpu", "wanted": 9, "largest": 8},
    )
    assert why(decision, memory)[1] == {"resource": "memory", "wanted": 33, "largest": 32}
    assert why(decision, gpu)[1] == {"resource": "gpu", "wanted": 3, "largest": 2}
    assert why(decision, ports)[1] == {"resource": "port", "wanted": 11, "largest": 10}
    # each amount exists, but not on one machine
    assert why(decision, split)[0] == reasons.NEVER_FITS


def test_gpu_type_that_is_not_here(scene, make_gpus):
    scene.machine(gpus=make_gpus(2, name="NVIDIA A100-SXM4-80GB"))
    shape, _ = scene.waiting(gpu=1, gpu_type="RTX 4090")
    assert why(scene.decide(), shape) == (
        reasons.GPU_TYPE_ABSENT,
        {"wanted": "RTX 4090", "present": ["NVIDIA A100-SXM4-80GB"]},
    )


def test_too_many_of_a_type_that_is_here_never_fit(scene, make_gpus):
    scene.machine(gpus=make_gpus(2, name="A100") + make_gpus(2, name="T4", first=2))
    shape, _ = scene.waiting(gpu=3, gpu_type="A100")
    assert why(scene.decide(), shape)[1] == {"resource": "gpu", "wanted": 3, "largest": 2}


def test_a_closed_gate_is_named_with_value_and_limit(scene):
    """R12."""
    scene.machine(closed_gates=(ClosedGate("cpu", 93.456, 90.0),))
    shape, _ = scene.waiting()
    decision = scene.decide()
    assert started(decision) == []
    assert why(decision, shape) == (reasons.GATE, {"gate": "cpu", "value": 93.5, "limit": 90.0})


def test_a_machine_with_open_gates_is_taken_instead(scene):
    scene.machine("m1", closed_gates=(ClosedGate("disk", 99.0, 90.0),))
    scene.machine("m2")
    scene.waiting()
    assert [p.node_id for p in scene.decide().placements] == ["m2"]


def test_gpus_held_by_strangers_are_named(scene, make_gpus):
    holder = Holder(4711, "eve", "python")
    busy = make_gpus(1, holders=(holder,))
    locked = make_gpus(1, first=1, locked_by_other_server=True)
    scene.machine(gpus=busy + locked)
    shape, _ = scene.waiting(gpu=2)
    assert why(scene.decide(), shape) == (
        reasons.GPUS_HELD_ELSEWHERE,
        {
            "gpus": [
                {
                    "node": "m1",
                    "index": 0,
                    "holder": {"user": "eve", "pid": 4711, "name": "python"},
                },
                {"node": "m1", "index": 1, "server": True},
            ]
        },
    )


def test_held_gpus_of_another_type_are_not_blamed(scene, make_gpus):
    scene.machine(
        gpus=make_gpus(1, name="T4", locked_by_other_server=True)
        + make_gpus(1, first=1, name="A100", locked_by_other_server=True)
    )
    shape, _ = scene.waiting(gpu=1, gpu_type="A100")
    assert [gpu["index"] for gpu in why(scene.decide(), shape)[1]["gpus"]] == [1]


def test_fenced_gpus_are_missing_not_held(scene, make_gpus):
    scene.machine(gpus=make_gpus(1, fenced=True))
    shape, _ = scene.waiting(gpu=1)
    assert why(scene.decide(), shape) == (
        reasons.NOT_ENOUGH,
        {"resource": "gpu", "wanted": 1, "free": 0, "total": 1},
    )


def test_shared_gpus_fill_one_before_the_next(scene, make_gpus):
    scene.machine(gpus=make_gpus(2))
    shape, _ = scene.waiting(count=5, gpu=0.4, cpu=0.5)
    decision = scene.decide()
    used = [placement.gpus[0].index for placement in decision.placements]
    assert used == [0, 0, 1, 1]
    assert why(decision, shape)[1] == {"resource": "gpu", "wanted": 0.4, "free": 0.2, "total": 2}


def test_a_whole_gpu_is_not_given_where_shares_are(scene, make_gpus):
    scene.machine(gpus=make_gpus(1))
    scene.running(gpus=[GpuGrant("GPU-0", 0, 100)])
    shape, _ = scene.waiting(gpu=1)
    assert why(scene.decide(), shape)[1]["free"] == 0


def test_ports_are_the_lowest_free_ones(scene):
    """R55."""
    scene.machine(busy_ports=frozenset({38001}))
    scene.running(ports=(38000,))
    scene.waiting(ports=2)
    assert scene.decide().placements[0].ports == (38002, 38003)


def test_a_port_that_was_given_back_comes_last(scene):
    """R55: an attempt does not get the port of the one before it, where something may linger."""
    scene.machine()
    scene.waiting(ports=2)
    first = scene.decide()
    assert first.placements[0].ports == (38000, 38001)
    assert first.ports_from == 38002
    again = scene.decide(ports_from=first.ports_from)
    assert again.placements[0].ports == (38002, 38003)
    last = scene.decide(ports_from=38009)
    assert (last.placements[0].ports, last.ports_from) == ((38009, 38000), 38001)


def test_jobs_of_one_pass_get_different_ports_on_every_machine(scene):
    """R55: two nodes may be one host."""
    scene.machine(name="node-1", machine_id="machine-1", cpu=1)
    scene.machine(name="node-2", machine_id="machine-2", cpu=1)
    scene.waiting(count=2, cpu=1, ports=1)
    decision = scene.decide()
    assert {placed.machine_id for placed in decision.placements} == {"machine-1", "machine-2"}
    assert sorted(placed.ports for placed in decision.placements) == [(38000,), (38001,)]
    assert decision.ports_from == 38002


def test_a_pass_that_grants_no_port_moves_nothing(scene):
    scene.machine()
    scene.waiting()
    assert scene.decide(ports_from=38007).ports_from == 38007


def test_no_ports_left(scene):
    scene.machine(busy_ports=frozenset({38009, 5}))
    scene.running(ports=tuple(range(38000, 38008)))
    shape, _ = scene.waiting(ports=2)
    assert why(scene.decide(), shape)[1] == {
        "resource": "port",
        "wanted": 2,
        "free": 1,
        "total": 10,
    }


def test_two_jobs_of_one_pass_never_share_ports_or_gpus(scene, make_gpus):
    scene.machine(gpus=make_gpus(2))
    scene.waiting(count=2, gpu=1, ports=3)
    one, other = scene.decide().placements
    assert not set(one.ports) & set(other.ports)
    assert one.gpus[0].uuid != other.gpus[0].uuid


def test_the_tighter_machine_is_preferred(scene):
    scene.machine("big", cpu=64, memory=64)
    scene.machine("small", cpu=4, memory=64)
    scene.waiting(cpu=2)
    assert [p.node_id for p in scene.decide().placements] == ["small"]


def test_cpu_jobs_stay_away_from_free_gpus(scene, make_gpus):
    scene.machine("with-gpus", cpu=4, gpus=make_gpus(4))
    scene.machine("without", cpu=64, memory=64)
    scene.waiting(cpu=2)
    assert [p.node_id for p in scene.decide().placements] == ["without"]


def test_gpus_of_one_group_are_preferred_over_machines(scene, make_gpus):
    scene.machine("apart", gpus=make_gpus(1, group="a") + make_gpus(1, group="b", first=1))
    scene.machine("together", gpus=make_gpus(4, group="c", first=10))
    scene.waiting(gpu=2)
    assert [p.node_id for p in scene.decide().placements] == ["together"]


def test_servers_on_one_machine_share_it_and_take_turns(scene):
    scene.machine("s1", machine_id="box", cpu=4)
    scene.machine("s2", machine_id="box", cpu=4)
    scene.running(on="s1", cpu=1)
    shape, _ = scene.waiting(count=5)
    decision = scene.decide()
    assert [p.node_id for p in decision.placements] == ["s2", "s1", "s2"]
    assert why(decision, shape)[0] == reasons.NOT_ENOUGH


def test_the_nearest_machine_gives_the_reason(scene):
    scene.machine("m1", cpu=4)
    scene.machine("m2", cpu=8)
    scene.running(on="m1", cpu=4)
    scene.running(on="m2", cpu=5)
    shape, _ = scene.waiting(cpu=4)
    assert why(scene.decide(), shape)[1] == {"resource": "cpu", "wanted": 4, "free": 3, "total": 8}


def test_jobs_behind_those_shown_still_get_a_reason(scene):
    scene.machine(cpu=8)
    shape, _ = scene.waiting(count=2, more=True)
    assert why(scene.decide(max_concurrent=2), shape)[0] == reasons.MAX_CONCURRENT
    assert why(scene.decide(max_concurrent=9), shape)[0] == reasons.QUEUED


def test_a_shape_whose_jobs_all_start_gets_no_reason(scene):
    scene.machine()
    scene.waiting()
    assert scene.decide().waits == {}


def test_zero_resources_fit_on_a_machine_that_is_overcommitted(scene):
    scene.machine(cpu=1, memory=1)
    scene.running(cpu=4, memory=4)
    _, jobs = scene.waiting(cpu=0, memory=0)
    shape, _ = scene.waiting(cpu=0.5, memory=0)
    decision = scene.decide()
    assert started(decision) == jobs
    assert why(decision, shape)[1] == {"resource": "cpu", "wanted": 0.5, "free": 0, "total": 1}


def test_the_same_view_gives_the_same_decision(scene, make_gpus):
    scene.machine("m1", gpus=make_gpus(4))
    scene.machine("m2", gpus=make_gpus(4, first=10))
    scene.waiting(count=3, gpu=1)
    scene.waiting(count=3, gpu=0.5)
    assert scene.decide() == scene.decide()
