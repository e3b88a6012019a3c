"""A large job is not starved by a stream of small ones: reservations, alone and in simulation."""

from __future__ import annotations

import pytest
from yard_simulation import Simulation

from runyard.domain import reasons
from runyard.domain.job import Priority
from runyard.domain.resources import Capacity, Gpu, GpuGrant, Request
from runyard.domain.scheduling.gates import ClosedGate
from runyard.domain.scheduling.view import MachineView

LONG_AGO = 0.0


def machine(name="m1", cpu=8, gpus=0, ports=10):
    found = tuple(Gpu(i, f"GPU-{name}-{i}", "NVIDIA H100", 80000) for i in range(gpus))
    return MachineView(name, f"machine-{name}", Capacity(cpu * 1000, 1 << 20, found, 38000, ports))


@pytest.mark.parametrize("max_concurrent", [2, 3, 8, 100])
@pytest.mark.parametrize(
    ("large", "small"),
    [
        (Request(8000, 0), Request(1000, 0)),
        (Request(7500, 0), Request(1000, 0)),
        (Request(0, 0, 4000), Request(0, 0, 1000)),
        (Request(0, 0, 4000), Request(0, 0, 250)),
        (Request(0, 0, 1000), Request(0, 0, 400)),
        (Request(0, 0, 900), Request(0, 0, 200)),
        (Request(1000, 0, 4000, port_count=10), Request(1000, 0, 1000, port_count=1)),
        (Request(0, 0, port_count=10), Request(0, 0, port_count=3)),
    ],
)
@pytest.mark.parametrize("machines", [1, 2])
def test_a_stream_of_small_jobs_does_not_starve_a_large_one(
    large, small, max_concurrent, machines
):
    yard = Simulation(
        [machine(f"m{number}", gpus=4) for number in range(machines)],
        max_concurrent,
        starvation_s=50.0,
    )
    for step in range(40):
        yard.submit(Priority.MEDIUM, small, lasts=20.0 + step % 7)
    yard.one_pass()
    yard.waiting.clear()  # what runs is in its way, what waits before it is not the question
    target = yard.submit(Priority.MEDIUM, large, lasts=10.0)
    for second in range(1, 400):
        yard.now = float(second)
        for _ in range(3):
            yard.submit(Priority.MEDIUM, small, lasts=20.0 + second % 7)
        yard.end_due()
        yard.one_pass()
        if target in yard.started_at:
            break
    # at the latest when everything that ran as it began to starve has ended
    assert yard.started_at[target] <= 50.0 + 27.0


def test_with_a_stream_on_all_machines_the_reservation_stays_where_it_is():
    yard = Simulation([machine("m1"), machine("m2")], 100, starvation_s=10.0)
    for step in range(16):
        yard.submit(Priority.MEDIUM, Request(1000, 0), lasts=30.0 + step)
    yard.one_pass()
    target = yard.submit(Priority.MEDIUM, Request(8000, 0))
    places = set()
    while target not in yard.started_at:
        yard.now += 1.0
        assert yard.now < 200
        yard.submit(Priority.MEDIUM, Request(1000, 0), lasts=25.0)
        yard.end_due()
        made = yard.one_pass().reservations
        places.update(reservation.node_id for reservation in made if reservation.job_id == target)
    assert len(places) == 1


def test_several_starving_jobs_get_their_turn():
    yard = Simulation([machine("m1"), machine("m2")], 6, starvation_s=20.0)
    for _ in range(20):
        yard.submit(Priority.MEDIUM, Request(1000, 0), lasts=15.0)
    yard.one_pass()
    large = [
        yard.submit(Priority.MEDIUM, Request(cpu, 0), lasts=15.0) for cpu in (8000, 7000, 6000)
    ]
    large.append(yard.submit(Priority.LOW, Request(8000, 0), lasts=15.0))
    while not set(large) <= set(yard.started_at):
        yard.now += 1.0
        assert yard.now < 500
        yard.submit(Priority.LOW, Request(1000, 0), lasts=15.0)
        yard.end_due()
        yard.one_pass()


def test_before_the_time_is_up_nothing_is_reserved(scene):
    scene.machine(cpu=4)
    scene.running(cpu=2)
    scene.waiting(cpu=4, queued_at=800.0)
    _, small = scene.waiting(cpu=1, queued_at=900.0)
    decision = scene.decide(now=1000.0, starvation_s=300.0)
    assert [placement.job_id for placement in decision.placements] == small
    assert decision.reservations == ()


def test_jobs_behind_may_use_what_the_starving_one_does_not_need(scene):
    scene.machine(cpu=8, memory=16)
    scene.running(cpu=1, memory=12)
    scene.waiting(cpu=5, memory=8, queued_at=LONG_AGO)
    blocked, _ = scene.waiting(cpu=3, memory=0, queued_at=1.0)
    _, fits = scene.waiting(cpu=2, memory=0, queued_at=2.0)
    memory, _ = scene.waiting(cpu=0, memory=1, queued_at=3.0)
    decision = scene.decide()
    assert [placement.job_id for placement in decision.placements] == fits
    assert decision.waits[blocked].code == reasons.RESERVED
    assert decision.waits[blocked].params == {"job": "job-1"}
    assert decision.waits[memory].code == reasons.RESERVED


def test_jobs_ahead_in_the_queue_are_not_held_back(scene):
    scene.machine(cpu=4)
    scene.running(cpu=2)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    _, urgent = scene.waiting(cpu=2, queued_at=999.0, priority="high")
    assert [placement.job_id for placement in scene.decide().placements] == urgent


def test_a_starving_gpu_job_leaves_other_gpus_alone(scene, make_gpus):
    scene.machine(cpu=8, gpus=make_gpus(4))
    scene.running(gpus=[GpuGrant("GPU-0", 0, 1000)], started_at=0.0, expected_s=5000.0)
    scene.running(gpus=[GpuGrant("GPU-1", 1, 1000)], started_at=0.0, expected_s=2000.0)
    scene.waiting(gpu=3, cpu=1, queued_at=LONG_AGO)
    waits, _ = scene.waiting(gpu=1, cpu=1, queued_at=1.0)
    decision = scene.decide()
    # GPU 1 is the next to come free, so that one is waited for together with the two free ones
    assert decision.reservations[0].gpu_uuids == ("GPU-1", "GPU-2", "GPU-3")
    assert decision.waits[waits].code == reasons.RESERVED


def test_no_reservation_for_a_job_whose_gpus_strangers_hold(scene, make_gpus):
    """It could be held for ever; others go on meanwhile."""
    scene.machine(gpus=make_gpus(1, locked_by_other_server=True) + make_gpus(1, first=1))
    scene.waiting(gpu=2, queued_at=LONG_AGO)
    _, small = scene.waiting(gpu=1, queued_at=1.0)
    decision = scene.decide()
    assert [placement.job_id for placement in decision.placements] == small
    assert decision.reservations == ()


def test_the_machine_where_it_fits_soonest_is_reserved(scene):
    scene.machine("m1", cpu=4)
    scene.machine("m2", cpu=4)
    scene.running(on="m1", cpu=4, started_at=0.0, expected_s=9000.0)
    scene.running(on="m2", cpu=4, started_at=0.0, expected_s=2000.0)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    assert [r.node_id for r in scene.decide().reservations] == ["m2"]


def test_unknown_ends_come_after_known_ones_and_open_gates_first(scene):
    scene.machine("m1", cpu=4)
    scene.machine("m2", cpu=4)
    scene.machine("m3", cpu=4, closed_gates=(ClosedGate("cpu", 99.0, 90.0),))
    scene.running(on="m1", cpu=4)
    scene.running(on="m2", cpu=4, expected_s=9000.0)
    scene.running(on="m3", cpu=4, started_at=0.0, expected_s=1.0)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    assert [r.node_id for r in scene.decide().reservations] == ["m2"]


def test_a_reservation_moves_only_when_its_machine_cannot_keep_it(scene, make_gpus):
    scene.machine("m1", gpus=make_gpus(1))
    scene.machine("m2", gpus=make_gpus(1, first=1))
    scene.running(on="m1", gpus=[GpuGrant("GPU-0", 0, 1000)], started_at=0.0, expected_s=5000.0)
    scene.running(on="m2", gpus=[GpuGrant("GPU-1", 1, 1000)], started_at=0.0, expected_s=6000.0)
    scene.waiting(gpu=1, queued_at=LONG_AGO)
    scene.reservations = scene.decide().reservations
    assert scene.reservations[0].node_id == "m1"
    scene.running(on="m1", cpu=1, started_at=0.0, expected_s=90000.0)
    assert scene.decide().reservations == scene.reservations
    scene.machines[0] = machine("m1", gpus=0)  # its GPU is gone
    assert [r.node_id for r in scene.decide().reservations] == ["m2"]


def test_a_reservation_with_other_needs_is_made_anew(scene):
    scene.machine(cpu=4)
    scene.running(cpu=4)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    scene.reservations = scene.decide().reservations
    scene.shapes.clear()
    scene._jobs = 0
    scene.waiting(cpu=3, queued_at=LONG_AGO)
    assert scene.decide().reservations[0].request.cpu_milli == 3000


def test_a_pass_without_free_slots_does_not_forget_reservations(scene):
    scene.machine(cpu=4)
    scene.running(cpu=2)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    made = scene.decide(max_concurrent=2).reservations
    assert len(made) == 1
    scene.reservations = made
    assert scene.decide(max_concurrent=1).reservations == made


def test_a_reservation_ends_with_the_start(scene):
    scene.machine(cpu=4)
    scene.running(cpu=2)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    scene.reservations = scene.decide().reservations
    scene.attempts.clear()
    decision = scene.decide()
    assert [placement.job_id for placement in decision.placements] == [1]
    assert decision.reservations == ()


def test_a_reservation_of_a_job_that_left_the_queue_is_dropped(scene):
    scene.machine(cpu=4)
    scene.running(cpu=2)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    scene.reservations = scene.decide().reservations
    scene.shapes.clear()
    _, others = scene.waiting(cpu=2)
    decision = scene.decide()
    assert [placement.job_id for placement in decision.placements] == others
    assert decision.reservations == ()


def test_two_starving_jobs_do_not_reserve_the_same_machine(scene):
    scene.machine("m1", cpu=4)
    scene.machine("m2", cpu=4)
    scene.running(on="m1", cpu=4)
    scene.running(on="m2", cpu=4)
    scene.waiting(cpu=4, queued_at=LONG_AGO)
    scene.waiting(cpu=3, queued_at=1.0)
    scene.waiting(cpu=2, queued_at=2.0)
    decision = scene.decide()
    assert [(r.job_id, r.node_id) for r in decision.reservations] == [(1, "m1"), (2, "m2")]
