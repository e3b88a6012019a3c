"""Why a shape waits: the code that helps most, with the numbers behind it.

Amounts are told as people ask for them: cores, GB, GPUs, ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runyard.domain import reasons
from runyard.domain.reasons import Reason
from runyard.domain.resources import Capacity, Gpu, Request
from runyard.domain.scheduling.gang import groups, most_slices, slices_when_empty
from runyard.domain.scheduling.gpu_choice import WHOLE, matches_type
from runyard.domain.scheduling.room import Room, Shortage
from runyard.domain.scheduling.view import MachineView, Reservation, ShapeView


def runs_on(shape: ShapeView, machine: MachineView) -> bool:
    """Whether the machine has the shape's executor and is large enough for a slice of it."""
    if shape.nodes > 1 and not machine.node:
        return False
    return _has_executor(shape, machine) and _large_enough(shape.request, machine.capacity)


def executor_of(shape: ShapeView, machine: MachineView) -> str:
    """Which executor of the machine starts it."""
    return _for_any(machine)[0] if shape.executor == "auto" else shape.executor


def lasting_reason(shape: ShapeView, machines: Sequence[MachineView]) -> Reason | None:
    """Why the shape cannot start on any of these machines as they are, however long it waits."""
    if not machines:
        return Reason(reasons.NO_NODE)
    having = [machine for machine in machines if _has_executor(shape, machine)]
    if not having:
        return _unavailable(shape.executor, machines)
    request = shape.request
    if any(_large_enough(request, machine.capacity) for machine in having):
        return _too_few(shape, having) if shape.nodes > 1 else None
    names = sorted({gpu.name for machine in having for gpu in machine.capacity.gpus})
    if (
        request.gpu_milli
        and request.gpu_type is not None
        and not any(matches_type(request.gpu_type, name) for name in names)
    ):
        return Reason(reasons.GPU_TYPE_ABSENT, {"wanted": request.gpu_type, "present": names})
    return _never_fits(request, [machine.capacity for machine in having])


def passing_reason(
    shape: ShapeView,
    machines: Iterable[MachineView],
    room: Room,
    reserved: Callable[[MachineView], Reservation | None],
) -> Reason:
    """Why the shape does not start now on the machines that are large enough for it (at least
    one): from the machine that comes nearest to taking it."""
    if shape.nodes > 1:
        return _not_enough_nodes(shape, list(machines), room, reserved)
    return min(
        (_on_machine(shape.request, machine, room, reserved(machine)) for machine in machines),
        key=lambda found: found[0],
    )[1]


def _on_machine(
    request: Request, machine: MachineView, room: Room, reserved: Reservation | None
) -> tuple[tuple[int, float, str], Reason]:
    shortages = room.shortages(machine, request)
    if not shortages and machine.closed_gates:
        gate = machine.closed_gates[0]
        params = {"gate": gate.gate, "value": round(gate.value, 1), "limit": gate.limit}
        return (1, 0.0, machine.node_id), Reason(reasons.GATE, params)
    if not shortages:
        job = (reserved.ref or str(reserved.job_id)) if reserved else ""
        return (0, 0.0, machine.node_id), Reason(reasons.RESERVED, {"job": job})
    if shortages[0].resource == "gpu" and room.fit(machine, request, allowed=_not_fenced):
        return (2, 0.0, machine.node_id), _held_elsewhere(request, machine)
    lacking = sum(1 - short.free / short.wanted for short in shortages)
    return (3, lacking, machine.node_id), _not_enough(shortages[0])


def _too_few(shape: ShapeView, machines: Sequence[MachineView]) -> Reason | None:
    """Of a job of several slices: the machines hold too few of them even when they are empty."""
    fitting = [machine for machine in machines if runs_on(shape, machine)]
    held = [slices_when_empty(shape, group) for group in groups(fitting)]
    if any(many >= shape.nodes for many in held):
        return None
    # A server's own machine is one node, however large it is.
    params = {"resource": "node", "wanted": shape.nodes, "largest": max(held, default=1)}
    return Reason(reasons.NEVER_FITS, {**params, "each": _each(shape.request)})


def _not_enough_nodes(
    shape: ShapeView,
    machines: Sequence[MachineView],
    room: Room,
    reserved: Callable[[MachineView], Reservation | None],
) -> Reason:
    """From the group of machines that comes nearest to holding all slices."""
    counted = [(most_slices(shape, group, room), group) for group in groups(machines)]
    free, nearest = max(counted, key=lambda item: item[0])
    kept = [found for machine in nearest if (found := reserved(machine)) is not None]
    if free >= shape.nodes and kept:
        return Reason(reasons.RESERVED, {"job": kept[0].ref or str(kept[0].job_id)})
    params = {"wanted": shape.nodes, "free": free, "total": len(nearest)}
    return Reason(reasons.NOT_ENOUGH_NODES, {**params, "each": _each(shape.request)})


def _each(request: Request) -> dict[str, Any]:
    """What every node must have, as people ask for it."""
    wanted: dict[str, Any] = {
        resource: in_words(resource, amount) for resource, amount in _wanted(request) if amount
    }
    return {**wanted, "gpu_type": request.gpu_type} if request.gpu_type else wanted


def _held_elsewhere(request: Request, machine: MachineView) -> Reason:
    gpus: list[dict[str, Any]] = []
    for gpu in machine.capacity.gpus:
        if not matches_type(request.gpu_type, gpu.name):
            continue
        for holder in gpu.holders:
            person = {"user": holder.user, "pid": holder.pid, "name": holder.name}
            gpus.append({"node": machine.node_id, "index": gpu.index, "holder": person})
        if gpu.locked_by_other_server:
            gpus.append({"node": machine.node_id, "index": gpu.index, "server": True})
    return Reason(reasons.GPUS_HELD_ELSEWHERE, {"gpus": gpus})


def _not_enough(short: Shortage) -> Reason:
    return Reason(
        reasons.NOT_ENOUGH,
        {
            "resource": short.resource,
            "wanted": in_words(short.resource, short.wanted),
            "free": in_words(short.resource, short.free),
            "total": in_words(short.resource, short.total),
        },
    )


def _never_fits(request: Request, capacities: Sequence[Capacity]) -> Reason:
    for resource, wanted in _wanted(request):
        largest = max(_total(resource, request, capacity) for capacity in capacities)
        if wanted > largest:
            return _never(resource, wanted, largest)
    # each amount exists somewhere, but not all of them on one machine
    nearest = min(capacities, key=lambda capacity: len(_too_small(request, capacity)))
    resource, wanted, total = _too_small(request, nearest)[0]
    return _never(resource, wanted, total)


def _never(resource: str, wanted: int, largest: int) -> Reason:
    return Reason(
        reasons.NEVER_FITS,
        {
            "resource": resource,
            "wanted": in_words(resource, wanted),
            "largest": in_words(resource, largest),
        },
    )


def in_words(resource: str, amount: int) -> float | int:
    """An amount in the unit people use: cores, GB, GPUs; ports as they are."""
    unit = {"cpu": 1000, "gpu": WHOLE, "memory": 1024}.get(resource, 1)
    whole, rest = divmod(amount, unit)
    return round(amount / unit, 3) if rest else whole


def _has_executor(shape: ShapeView, machine: MachineView) -> bool:
    if shape.executor == "auto":
        return bool(_for_any(machine))
    return shape.executor in machine.executors


def _large_enough(request: Request, capacity: Capacity) -> bool:
    """Whether `_too_small` would find nothing; asked for every shape and machine of a pass."""
    return (
        request.cpu_milli <= capacity.cpu_milli
        and request.memory_mb <= capacity.memory_mb
        and request.port_count <= capacity.port_count
        and request.gpu_milli <= _total("gpu", request, capacity)
    )


def _too_small(request: Request, capacity: Capacity) -> list[tuple[str, int, int]]:
    """(resource, wanted, total) of what the machine lacks even when it is empty."""
    found = []
    for resource, wanted in _wanted(request):
        total = _total(resource, request, capacity)
        if wanted > total:
            found.append((resource, wanted, total))
    return found


def _wanted(request: Request) -> tuple[tuple[str, int], ...]:
    return (
        ("gpu", request.gpu_milli),
        ("cpu", request.cpu_milli),
        ("memory", request.memory_mb),
        ("port", request.port_count),
    )


def _total(resource: str, request: Request, capacity: Capacity) -> int:
    if resource == "cpu":
        return capacity.cpu_milli
    if resource == "memory":
        return capacity.memory_mb
    if resource == "port":
        return capacity.port_count
    if not request.gpu_milli:
        return 0
    if request.gpu_type is None:
        return WHOLE * len(capacity.gpus)
    return WHOLE * sum(1 for gpu in capacity.gpus if matches_type(request.gpu_type, gpu.name))


def _not_fenced(gpu: Gpu) -> bool:
    return not gpu.fenced


def _unavailable(executor: str, machines: Sequence[MachineView]) -> Reason:
    """With why, where a machine has it and it does not work: a code, and what it is about."""
    missing = [
        (name, why)
        for machine in machines
        for name, why in machine.missing.items()
        if why and (name == executor or (executor == "auto" and name != "docker"))
    ]
    return executor_unavailable(*(missing[0] if missing else (executor, "")))


def executor_unavailable(name: str, told: str) -> Reason:
    """`told` is what the executor said: a code, and what it is about."""
    why, _, at = told.partition(": ")
    params = {"executor": name, "why": why, "at": at}
    return Reason(
        reasons.EXECUTOR_UNAVAILABLE, {name: value for name, value in params.items() if value}
    )


def _for_any(machine: MachineView) -> tuple[str, ...]:
    """The executors that run what asks for none: a container needs an image."""
    return tuple(name for name in machine.executors if name != "docker")
