"""What an attempt runs with that its job did not ask for. Kept outside every checkpoint, so that
resuming cannot bring the old values back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from runyard.domain.job import JobSpec
from runyard.domain.recovery import command_flags


@dataclass(frozen=True, slots=True)
class Change:
    kind: str  # param, flag, env, batch_scale
    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Adjustments:
    """All changes so far. `inserted` are flags the command did not have, each with the flag it
    stands behind; `refused` those that the program did not take."""

    params: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    inserted: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    batch_scale: float = 1.0
    refused: tuple[str, ...] = ()

    @property
    def settings(self) -> str:
        """Equal for equal adjustments."""
        return "" if self == Adjustments() else json.dumps(as_mapping(self), sort_keys=True)

    def with_change(self, change: Change) -> Adjustments:
        if change.kind == "param":
            return replace(self, params={**self.params, change.name: change.after})
        if change.kind == "env":
            return replace(self, env={**self.env, change.name: str(change.after)})
        if change.kind == "batch_scale":
            return replace(self, batch_scale=float(change.after))
        return replace(self, flags={**self.flags, change.name: str(change.after)})

    def with_inserted(self, change: Change, behind: str) -> Adjustments:
        added = self.with_change(change)
        return replace(added, inserted={**self.inserted, change.name: behind})

    def without_flag(self, name: str) -> Adjustments:
        return replace(
            self,
            flags={flag: value for flag, value in self.flags.items() if flag != name},
            inserted={flag: behind for flag, behind in self.inserted.items() if flag != name},
            refused=(*self.refused, name),
        )


def applied(spec: JobSpec, adjustments: Adjustments) -> JobSpec:
    """The job as its next attempt runs it; RUNYARD_BATCH_SCALE is given apart."""
    command: command_flags.Command = spec.command
    for flag, behind in adjustments.inserted.items():
        command = command_flags.with_inserted(command, flag, adjustments.flags[flag], behind)
    command = command_flags.with_values(command, adjustments.flags)
    return replace(
        spec,
        command=command if isinstance(command, str) else tuple(command),
        params={**spec.params, **adjustments.params},
        env_vars={**spec.env_vars, **adjustments.env},
    )


def batch_scale_text(adjustments: Adjustments) -> str:
    """As RUNYARD_BATCH_SCALE says it."""
    return f"{adjustments.batch_scale:g}"


def as_mapping(adjustments: Adjustments) -> dict[str, Any]:
    return asdict(adjustments)


def from_mapping(kept: Mapping[str, Any] | None) -> Adjustments:
    if not kept:
        return Adjustments()
    return Adjustments(**{**kept, "refused": tuple(kept.get("refused", ()))})
