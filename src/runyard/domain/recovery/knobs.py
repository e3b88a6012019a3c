"""Where a job keeps a value that a plan wants to change: a parameter, a flag or a variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.domain.job import JobSpec
from runyard.domain.recovery import command_flags
from runyard.domain.recovery.adjustments import Change
from runyard.domain.recovery.command_flags import NAMES, SHORT, Role

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_VARIABLE_NAMES = {Role.PORT: ("master_port",)}  # others only under their whole names
_AMBIGUOUS = SHORT | {"batch"}  # as names of variables


@dataclass(frozen=True, slots=True)
class Knob:
    kind: str  # param, flag, env
    name: str
    value: Any

    def turned(self, after: Any) -> Change:
        return Change(self.kind, self.name, self.value, after)

    @property
    def whole(self) -> int | None:
        """Its value, if it is a whole number."""
        if isinstance(self.value, bool):
            return None
        try:
            return int(str(self.value))
        except ValueError:
            return None

    @property
    def number(self) -> float | None:
        if isinstance(self.value, bool):
            return None
        try:
            return float(str(self.value))
        except ValueError:
            return None

    @property
    def truth(self) -> bool | None:
        said = str(self.value).lower()
        return True if said in _TRUE else False if said in _FALSE else None


def find(spec: JobSpec, role: Role) -> Knob | None:
    """Declared parameters first, then flags of the command, then variables."""
    flag = command_flags.find(spec.command, role)
    if flag is not None and flag.template in spec.params:
        return Knob("param", str(flag.template), spec.params[str(flag.template)])
    param = _named(spec.params, NAMES[role])
    if param is not None:
        return Knob("param", param, spec.params[param])
    if flag is not None:
        return Knob("flag", flag.written, flag.value)
    names = _VARIABLE_NAMES.get(
        role, tuple(name for name in NAMES[role] if name not in _AMBIGUOUS)
    )
    variable = _named(spec.env_vars, names)
    return None if variable is None else Knob("env", variable, spec.env_vars[variable])


def _named(given: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        for key in given:
            if command_flags.normal(key) == name:
                return key
    return None
