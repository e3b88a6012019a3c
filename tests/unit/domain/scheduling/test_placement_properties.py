"""Random submits, ends and passes: nothing over-allocated, order kept, every wait has a code."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from queue_steps import GPU_MODELS, SELDOM, priorities, step_lists, submit_all, take
from yard_simulation import Simulation

from runyard.domain.job import Priority
from runyard.domain.resources import Capacity, Gpu, Holder, Request
from runyard.domain.scheduling.gates import ClosedGate
from runyard.domain.scheduling.view import MachineView

gpus = st.builds(
    Gpu,
    index=st.just(0),
    uuid=st.just(""),
    name=st.sampled_from(GPU_MODELS),
    memory_mb=st.just(80000),
    group=st.sampled_from(["numa-0", "numa-1"]),
    fenced=SELDOM,
    holders=st.sampled_from([(), (), (), (Holder(7, "eve", "python"),)]),
    locked_by_other_server=SELDOM,
)


@st.composite
def machine_lists(draw):
    machines = []
    for number in range(draw(st.integers(1, 3))):
        found = [
            replace(gpu, index=index, uuid=f"GPU-{number}-{index}")
            for index, gpu in enumerate(draw(st.lists(gpus, max_size=5)))
        ]
        machines.append(
            MachineView(
                f"node-{number}",
                f"machine-{number}",
                Capacity(
                    draw(st.integers(0, 8)) * 1000,
                    draw(st.integers(0, 8)) * 1024,
                    tuple(found),
                    38000,
                    draw(st.integers(0, 5)),
                ),
                drained=draw(SELDOM),
                closed_gates=draw(st.sampled_from([(), (), (), (ClosedGate("cpu", 95, 90),)])),
                busy_ports=draw(st.sampled_from([frozenset(), frozenset({38001})])),
            )
        )
    if draw(st.booleans()):  # a second server on the first machine
        machines.append(replace(machines[0], node_id="node-twin", drained=False))
    return machines


requests = st.builds(
    Request,
    cpu_milli=st.sampled_from([0, 500, 1000, 2000, 4000, 9000]),
    memory_mb=st.sampled_from([0, 512, 1024, 4096]),
    gpu_milli=st.sampled_from([0, 0, 0, 250, 400, 1000, 2000, 3000]),
    gpu_type=st.sampled_from([None, None, "A100", "h100", "V100"]),
    port_count=st.sampled_from([0, 0, 1, 2]),
)
arrays = st.sampled_from([None, None, ("a", 2), ("b", 1), ("c", 0)])
steps = step_lists(requests, array=arrays)


@settings(max_examples=300, deadline=None)
@given(machines=machine_lists(), steps=steps, max_concurrent=st.integers(0, 6))
def test_never_over_allocates_and_keeps_order(machines, steps, max_concurrent):
    """R10, R11, R33: amounts, GPU shares, ports, slots and array limits hold after every pass."""
    take(Simulation(machines, max_concurrent), steps)


@settings(max_examples=200, deadline=None)
@given(machines=machine_lists(), steps=steps)
def test_a_second_pass_over_the_same_scene_starts_nothing(machines, steps):
    """A pass leaves nothing undone, so that no tick is needed to pick up the rest."""
    yard = Simulation(machines, 6)
    submit_all(yard, steps)
    yard.one_pass()
    assert yard.one_pass().placements == ()


@settings(max_examples=200, deadline=None)
@given(
    machines=machine_lists(),
    wanted=requests,
    others=st.lists(st.tuples(priorities, requests), max_size=6),
)
def test_a_job_alone_at_the_front_starts_if_it_fits_at_all(machines, wanted, others):
    """Whatever waits behind, the first in order is placed as if it were alone."""
    alone = Simulation(machines, 6)
    alone.submit(Priority.HIGH, wanted)
    crowd = Simulation(machines, 6)
    crowd.submit(Priority.HIGH, wanted)
    for priority, request in others:
        crowd.submit(priority, request)
    first = alone.one_pass().placements
    assert crowd.one_pass().placements[: len(first)] == first
