"""Gates: no new start on a machine that is too busy; hysteresis keeps them from fluttering."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain.resources import Load

MARGIN = 5.0  # points below the limit at which a closed gate opens again
OFF = 100.0


@dataclass(frozen=True, slots=True)
class GateLimits:
    """In percent; 100 turns a gate off."""

    cpu: float = 90.0
    memory: float = 85.0
    disk: float = 90.0


@dataclass(frozen=True, slots=True)
class ClosedGate:
    gate: str  # cpu, memory, disk
    value: float
    limit: float


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one machine; begin with `Gates()`, all open."""

    closed: tuple[ClosedGate, ...] = ()


def update_gates(
    gates: Gates, load: Load | None, limits: GateLimits, margin: float = MARGIN
) -> Gates:
    """The gates after this measurement; an unknown load changes nothing."""
    if load is None:
        return gates
    were_closed = {gate.gate for gate in gates.closed}
    closed = []
    for name, value, limit in gate_values(load, limits):
        if is_closed(value, limit, name in were_closed, margin):
            closed.append(ClosedGate(name, value, limit))
    return Gates(tuple(closed))


def gate_values(load: Load, limits: GateLimits) -> tuple[tuple[str, float, float], ...]:
    """(gate, measured percent, limit) of every gate."""
    return (
        ("cpu", load.cpu, limits.cpu),
        ("memory", load.memory, limits.memory),
        ("disk", load.disk, limits.disk),
    )


def is_closed(value: float, limit: float, was_closed: bool, margin: float = MARGIN) -> bool:
    if limit >= OFF:
        return False
    if not was_closed:
        return value > limit
    # a limit near zero must still be able to open
    return value > limit - min(margin, limit / 2)
