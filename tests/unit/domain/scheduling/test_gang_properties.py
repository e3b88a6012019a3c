"""Random clusters, jobs of several nodes: all or nothing, never over-allocated, never starved."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from queue_steps import GPU_MODELS, SELDOM, step_lists, submit_all, take
from yard_simulation import Simulation

from runyard.domain.job import Priority
from runyard.domain.resources import Capacity, Gpu, Request
from runyard.domain.scheduling.room import Room
from runyard.domain.scheduling.view import MachineView
from runyard.domain.slices import Gang


@st.composite
def clusters(draw):
    machines = []
    for number in range(draw(st.integers(1, 5))):
        gpus = tuple(
            Gpu(
                index,
                f"GPU-{number}-{index}",
                draw(st.sampled_from(GPU_MODELS)),
                80000,
                fenced=draw(SELDOM),
            )
            for index in range(draw(st.integers(0, 4)))
        )
        capacity = Capacity(
            draw(st.integers(1, 8)) * 1000, draw(st.integers(1, 8)) * 1024, gpus, 38000, 4
        )
        machines.append(
            MachineView(
                f"ray-{number}",
                f"ray-{number}",
                capacity,
                executors=("ray",),
                drained=draw(SELDOM),
                node=f"n{number}",
                address=f"10.0.0.{number}",
                cluster=draw(st.sampled_from(["east", "east", "east", "west"])),
            )
        )
    if draw(st.booleans()):  # the server's own machine beside them
        own = Capacity(4000, 4096, (), 38000, 4)
        machines.append(MachineView("node-1", "machine-1", own, executors=("local",)))
    return machines


requests = st.builds(
    Request,
    cpu_milli=st.sampled_from([0, 500, 1000, 2000, 4000]),
    memory_mb=st.sampled_from([0, 512, 1024, 4096]),
    gpu_milli=st.sampled_from([0, 0, 250, 1000, 2000]),
    gpu_type=st.sampled_from([None, None, "A100", "h100"]),
    port_count=st.sampled_from([0, 0, 1]),
)
gangs = st.one_of(
    st.none(),
    st.builds(
        Gang, nodes=st.integers(1, 4), placement=st.sampled_from(["pack", "spread", "spread"])
    ),
)
steps = step_lists(requests, gang=gangs)


@settings(max_examples=300, deadline=None)
@given(machines=clusters(), steps=steps, max_concurrent=st.integers(0, 6))
def test_gangs_are_placed_whole_and_never_over_allocate(machines, steps, max_concurrent):
    """R34, R51: amounts, GPU shares and ports of every node hold after every pass."""
    take(Simulation(machines, max_concurrent), steps)


@settings(max_examples=200, deadline=None)
@given(machines=clusters(), steps=steps)
def test_a_second_pass_starts_no_further_gang(machines, steps):
    yard = Simulation(machines, 6)
    submit_all(yard, steps)
    yard.one_pass()
    assert yard.one_pass().placements == ()


@settings(max_examples=200, deadline=None)
@given(machines=clusters(), request=requests, gang=st.builds(Gang, nodes=st.integers(2, 4)))
def test_pack_takes_as_few_machines_as_can_hold_it(machines, request, gang):
    """Against every choice of machines, tried one by one."""
    yard = Simulation([replace(machine, drained=False) for machine in machines], 6)
    yard.submit(Priority.HIGH, request, gang=gang)
    placed = yard.one_pass().placements
    fewest = _fewest(yard.machines, request, gang.nodes)
    if not placed:
        assert fewest is None
        return
    assert len({part.machine_id for part in placed[0].slices}) == fewest


def _fewest(machines, request, nodes):
    """The first slice has one port more, so the machine it is on is tried as each of them."""
    best = None
    first = replace(request, port_count=request.port_count + 1)
    for cluster in {machine.cluster for machine in machines}:
        group = [m for m in machines if m.node and m.cluster == cluster]
        for head in group:
            held = len(Room().fits(head, [first, *[request] * (nodes - 1)]))
            others = sorted(
                (len(Room().fits(m, [request] * nodes)) for m in group if m is not head),
                reverse=True,
            )
            if not held:
                continue
            used = 1
            for many in others:
                if held >= nodes:
                    break
                held, used = held + many, used + 1
            if held >= nodes and (best is None or used < best):
                best = used
    return best


@settings(max_examples=100, deadline=None)
@given(nodes=st.integers(2, 4), gpus=st.integers(1, 4))
def test_small_jobs_do_not_starve_a_gang(nodes, gpus):
    """A stream of small jobs that always fits: the gang still starts once it has waited, at the
    latest when what ran at that time has ended."""
    machines = [
        MachineView(
            f"ray-{number}",
            f"ray-{number}",
            Capacity(
                8000,
                8192,
                tuple(Gpu(index, f"GPU-{number}-{index}", "H100", 80000) for index in range(gpus)),
            ),
            executors=("ray",),
            node=f"n{number}",
            cluster="east",
        )
        for number in range(nodes)
    ]
    yard = Simulation(machines, 100, starvation_s=50.0)
    small = Request(100, 128, 1000)
    for number in range(nodes * gpus):
        yard.submit(Priority.MEDIUM, small, lasts=10.0 + number)
    yard.one_pass()
    gang = yard.submit(
        Priority.MEDIUM, Request(1000, 1024, gpus * 1000), gang=Gang(nodes, "spread"), lasts=5.0
    )
    for _ in range(200):
        yard.now += 1.0
        yard.end_due()
        yard.submit(Priority.MEDIUM, small, lasts=15.0)
        yard.one_pass()
        if gang in yard.started_at:
            break
    assert yard.started_at.get(gang, 1e9) <= 50.0 + 10.0 + nodes * gpus + 16.0
