"""Reservations: what keeps a large job from being starved by small ones that fit around it.

The room a reservation needs can only grow: jobs behind it take nothing that it lacks. So the job
starts at the latest when everything that ran at the time of the reservation has ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat

from runyard.domain.resources import Request
from runyard.domain.scheduling.gang import Chosen, fit_gang, groups
from runyard.domain.scheduling.gpu_choice import matches_type, usable
from runyard.domain.scheduling.room import Fit, Room
from runyard.domain.scheduling.view import (
    AttemptView,
    MachineView,
    Reservation,
    ShapeView,
    WaitingJobView,
)


def reserve(
    shape: ShapeView,
    job: WaitingJobView,
    machines: Sequence[MachineView],
    room: Room,
    before: Sequence[Reservation],
    now: float,
) -> list[Reservation]:
    """First call for this job on the machine where it can start soonest; none when no machine
    would have room for it even if everything of ours there ended.

    A reservation from the last pass stays where it is: one that moved about could starve."""
    request = shape.first_request
    for kept in before:
        for machine in machines:
            if machine.node_id == kept.node_id and _still_good(kept, machine, request):
                return [kept]
    found = []
    for machine in machines:
        chance = soonest(machine, request, room, now)
        if chance is not None:
            at, ends, fit = chance
            key = (bool(machine.closed_gates), at, ends, machine.node_id)
            found.append((key, machine, fit))
    if not found:
        return []
    _, machine, fit = min(found, key=lambda item: item[0])
    return [_reservation(shape, job, machine, [fit])]


def reserve_gang(
    shape: ShapeView,
    job: WaitingJobView,
    machines: Sequence[MachineView],
    room: Room,
    before: Sequence[Reservation],
    now: float,
) -> list[Reservation]:
    """The same for a job of several slices: first call on all the machines it will start on."""
    by_id = {machine.node_id: machine for machine in machines}
    if sum(kept.slices for kept in before) == shape.nodes and all(
        kept.node_id in by_id and _still_good(kept, by_id[kept.node_id], shape.first_request)
        for kept in before
    ):
        return list(before)
    open_machines = [replace(machine, closed_gates=()) for machine in machines]
    chances = [
        chance
        for group in groups(open_machines)
        if (chance := _soonest_gang(shape, group, room, now)) is not None
    ]
    if not chances:
        return []
    _, _, chosen = min(chances, key=lambda chance: chance[:2])
    fits: dict[str, list[Fit]] = {}
    for machine, fit in chosen:
        fits.setdefault(machine.node_id, []).append(fit)
    return [_reservation(shape, job, by_id[node], here) for node, here in fits.items()]


def _soonest_gang(
    shape: ShapeView, group: Sequence[MachineView], room: Room, now: float
) -> tuple[float, int, Chosen] | None:
    """As `soonest`, over all machines of the group."""
    best = fit_gang(shape, group, Room(), _nothing_kept)
    if best is None:
        return None
    attempts = sorted(
        (part for machine in group for part in room.used(machine.machine_id).attempts),
        key=lambda attempt: (ends_at(attempt, now), attempt.started_at or now),
    )
    least, most = 0, len(attempts)
    while least < most:
        middle = (least + most) // 2
        chosen = fit_gang(shape, group, Room(attempts[middle:]), _nothing_kept)
        if chosen is None:
            least = middle + 1
        else:
            most, best = middle, chosen
    return (ends_at(attempts[most - 1], now) if most else now, most, best)


def _nothing_kept(machine: MachineView) -> None:  # noqa: ARG001
    return None


def _reservation(
    shape: ShapeView, job: WaitingJobView, machine: MachineView, fits: Sequence[Fit]
) -> Reservation:
    return Reservation(
        job_id=job.job_id,
        ref=job.ref,
        shape_id=shape.id,
        node_id=machine.node_id,
        machine_id=machine.machine_id,
        request=shape.first_request,
        gpu_uuids=tuple(grant.uuid for fit in fits for grant in fit.gpus),
        slices=len(fits),
    )


def soonest(
    machine: MachineView, request: Request, room: Room, now: float
) -> tuple[float, int, Fit] | None:
    """When the request fits if attempts end as expected: (time, how many ends that takes, how).
    The time is infinite when an attempt in the way has no expected end."""
    best = Room().fit(machine, request)
    if best is None:
        return None
    attempts = sorted(
        room.used(machine.machine_id).attempts,
        key=lambda attempt: (ends_at(attempt, now), attempt.started_at or now),
    )
    # what fits after some ends also fits after more of them
    least, most = 0, len(attempts)
    while least < most:
        middle = (least + most) // 2
        fit = Room(attempts[middle:]).fit(machine, request)
        if fit is None:
            least = middle + 1
        else:
            most, best = middle, fit
    return (ends_at(attempts[most - 1], now) if most else now, most, best)


def ends_at(attempt: AttemptView, now: float) -> float:
    if attempt.expected_s is None:
        return math.inf
    begun = now if attempt.started_at is None else attempt.started_at
    return max(now, begun + attempt.expected_s)


def carried_over(
    before: Iterable[Reservation], shapes: Iterable[ShapeView], made: Mapping[str, Reservation]
) -> list[Reservation]:
    """Reservations of jobs the pass did not reach, which must not be forgotten."""
    heads = {shape.jobs[0].job_id for shape in shapes if shape.jobs}
    done = {reservation.job_id for reservation in made.values()}
    return [
        reservation
        for reservation in before
        if reservation.job_id in heads
        and reservation.job_id not in done
        and reservation.machine_id not in made
    ]


def _still_good(before: Reservation, machine: MachineView, request: Request) -> bool:
    if before.request != request:
        return False
    good = {
        gpu.uuid
        for gpu in machine.capacity.gpus
        if usable(gpu) and matches_type(request.gpu_type, gpu.name)
    }
    if not good.issuperset(before.gpu_uuids):
        return False
    return len(Room().fits(machine, repeat(request, before.slices))) == before.slices
