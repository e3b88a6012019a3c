"""Where all slices of a job fit at once: on as few machines as hold them, or each on its own.

All or nothing: half a gang would hold what nobody can use. The slices of one attempt lie on nodes
of one executor and one cluster, which can reach each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

from runyard.domain.resources import Capacity, Request
from runyard.domain.scheduling.gpu_choice import WHOLE, matches_type
from runyard.domain.scheduling.room import Fit, Room
from runyard.domain.scheduling.view import MachineView, Reservation, ShapeView
from runyard.domain.slices import Slice

Chosen = list[tuple[MachineView, Fit]]  # one for each slice, in their order
Reserved = Callable[[MachineView], Reservation | None]
MOST_ON_ONE = 4096  # slices that ask for nothing


def groups(machines: Iterable[MachineView]) -> list[list[MachineView]]:
    """Machines whose slices can work together. A server's own machine has no other beside it; two
    servers of one machine are told once."""
    found: dict[tuple[str, ...], dict[str, MachineView]] = {}
    for machine in machines:
        kind = (*machine.executors, machine.cluster) if machine.node else (machine.node_id,)
        found.setdefault(kind, {}).setdefault(machine.machine_id, machine)
    return [list(group.values()) for group in found.values()]


def fit_gang(
    shape: ShapeView, machines: Sequence[MachineView], room: Room, reserved: Reserved
) -> Chosen | None:
    """Machines for every slice, beside what is reserved; None when not all of them fit now."""
    spread = shape.gang is not None and shape.gang.placement == "spread"
    choose = _spread if spread else _pack
    ready = groups(machine for machine in machines if not machine.closed_gates)
    found = [chosen for group in ready if (chosen := choose(shape, group, room, reserved))]
    return min(found, key=_machines_used, default=None)


def most_slices(shape: ShapeView, group: Sequence[MachineView], room: Room) -> int:
    """How many slices of the shape the machines of a group hold now, at most as many as it has."""
    spread = shape.gang is not None and shape.gang.placement == "spread"
    each = 1 if spread else shape.nodes
    held = 0
    for machine in group:
        requests = repeat(shape.request, min(each, shape.nodes - held))
        held += len(room.fits(machine, requests))
        if held >= shape.nodes:
            break
    return held


def slices_when_empty(shape: ShapeView, group: Iterable[MachineView]) -> int:
    """The same with nothing else there and every GPU to be had; each machine holds one or more."""
    if shape.gang is not None and shape.gang.placement == "spread":
        return sum(1 for _ in group)
    return sum(_times(shape.request, machine.capacity) for machine in group)


def _times(request: Request, capacity: Capacity) -> int:
    """How many of these requests an empty machine holds."""
    alike = [gpu for gpu in capacity.gpus if matches_type(request.gpu_type, gpu.name)]
    amounts = [
        (request.cpu_milli, capacity.cpu_milli),
        (request.memory_mb, capacity.memory_mb),
        (request.port_count, capacity.port_count),
    ]
    most = [total // each for each, total in amounts if each]
    if request.shares_gpu:
        most.append(len(alike) * (WHOLE // request.gpu_milli))
    elif request.gpu_milli:
        most.append(len(alike) // request.gpu_whole)
    return min(most, default=MOST_ON_ONE)


def _spread(
    shape: ShapeView, group: Sequence[MachineView], room: Room, reserved: Reserved
) -> Chosen | None:
    if len(group) < shape.nodes:
        return None
    fits = [(m, fit) for m in group if (fit := room.fit(m, shape.request, reserved(m)))]
    if len(fits) < shape.nodes:
        return None
    fits.sort(key=lambda item: _fullness(room, shape, *item))
    first = _first(shape, fits, room, reserved)
    if first is None:
        return None
    rest = [item for item in fits if item[0] is not first[0]]
    return [first, *rest[: shape.nodes - 1]]


def _fullness(
    room: Room, shape: ShapeView, machine: MachineView, fit: Fit
) -> tuple[int, int, int, int, int, int, str]:
    """Smaller is better. Gangs that want machines of their own take the emptiest ones: if they
    filled some to the brim, what is left on the others could not be used by a gang."""
    groups, shares, gpus, cpu, memory, busy, name = room.looseness(machine, shape.request, fit)
    return groups, shares, -gpus, -cpu, -memory, busy, name


def _first(
    shape: ShapeView, fits: Chosen, room: Room, reserved: Reserved
) -> tuple[MachineView, Fit] | None:
    """Of machines that take a slice, the best that also has the port where all meet."""
    for machine, _ in fits:
        fit = room.fit(machine, shape.first_request, reserved(machine))
        if fit is not None:
            return machine, fit
    return None


def _pack(
    shape: ShapeView, group: Sequence[MachineView], room: Room, reserved: Reserved
) -> Chosen | None:
    """Each machine is tried as that of the first slice, which needs a port more than the others;
    then the machines that hold most: no choice needs fewer."""
    plain = [shape.request] * shape.nodes
    held = [(m, fits) for m in group if (fits := room.fits(m, plain, reserved(m)))]
    if sum(len(fits) for _, fits in held) < shape.nodes:
        return None
    held.sort(key=lambda item: room.looseness(item[0], shape.request, item[1][0]))
    found = []
    for machine, _ in held:
        first = room.fits(machine, [shape.first_request, *plain[1:]], reserved(machine))
        if first:
            others = [item for item in held if item[0] is not machine]
            chosen = _filled([(machine, fit) for fit in first], others, shape.nodes)
            if chosen is not None:
                found.append(chosen)
                if len(first) == shape.nodes:
                    break
    return min(found, key=_machines_used, default=None)


def _filled(
    chosen: Chosen, others: list[tuple[MachineView, list[Fit]]], nodes: int
) -> Chosen | None:
    """With slices on the machines that hold most, of those alike the tightest."""
    while len(chosen) < nodes:
        if not others:
            return None
        left = nodes - len(chosen)
        best = min(others, key=lambda item: -min(left, len(item[1])))
        chosen += [(best[0], fit) for fit in best[1][:left]]
        others.remove(best)
    return chosen


def _machines_used(chosen: Chosen) -> int:
    return len({machine.node_id for machine, _ in chosen})


def slices_of(chosen: Chosen) -> tuple[Slice, ...]:
    """What is kept of it; nothing where the attempt runs on the server's own machine."""
    return tuple(
        Slice(
            index=index,
            machine_id=machine.machine_id,
            node=machine.node,
            address=machine.address,
            gpus=fit.gpus,
            ports=fit.ports,
            node_id=machine.node_id,
            cluster=machine.cluster,
        )
        for index, (machine, fit) in enumerate(chosen)
        if machine.node
    )
