"""What one attempt ran with that another did not, for people to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.domain.recovery import command_flags
from runyard.domain.recovery.adjustments import Change


@dataclass(frozen=True, slots=True)
class Ran:
    """What an attempt was started with."""

    command: str | Sequence[str] = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    batch_scale: float = 1.0
    gpus: tuple[str, ...] = ()
    resume_from: str | None = None


def diff(before: Ran, after: Ran) -> tuple[Change, ...]:
    """Kinds are those of a plan, and command, gpus, resume_from."""
    found = [
        *_of_command(before.command, after.command),
        *_of_mappings("param", before.params, after.params),
        *_of_mappings("env", before.env, after.env),
    ]
    if before.batch_scale != after.batch_scale:
        scales = (before.batch_scale, after.batch_scale)
        found.append(Change("batch_scale", "RUNYARD_BATCH_SCALE", *scales))
    if before.gpus != after.gpus:
        found.append(Change("gpus", "gpus", list(before.gpus), list(after.gpus)))
    if before.resume_from != after.resume_from:
        found.append(Change("resume_from", "resume_from", before.resume_from, after.resume_from))
    return tuple(found)


def _of_command(before: str | Sequence[str], after: str | Sequence[str]) -> list[Change]:
    if _plain(before) == _plain(after):
        return []
    old = {flag.written: flag.value for flag in command_flags.flags(before)}
    new = {flag.written: flag.value for flag in command_flags.flags(after)}
    found = _of_mappings("flag", old, new)
    return found or [Change("command", "command", _plain(before), _plain(after))]


def _plain(command: str | Sequence[str]) -> str | list[str]:
    return command if isinstance(command, str) else list(command)


def _of_mappings(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    return [
        Change(kind, name, before.get(name), after.get(name))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
