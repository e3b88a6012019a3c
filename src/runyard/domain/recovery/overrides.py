"""What a job's `recovery` field says for a failure type, a category or `default`, instead of the
policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runyard.domain.failures.categories import Category, FailureType
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import JobSpec
from runyard.domain.recovery.adjustments import Change
from runyard.domain.recovery.policy import Charge, Row, Strategy
from runyard.domain.recovery.step import Step

DEFAULT = "default"
MOST_ATTEMPTS = 100
LONGEST_DELAY_S = 7 * 24 * 3600.0
FIELDS = ("strategy", "max_attempts", "delays", "params", "env")
NAMES = frozenset(
    {DEFAULT, *(kind.value for kind in FailureType), *(one.value for one in Category)}
)


class BadOverride(ValueError):
    """`code` is unknown_failure, unknown_field or bad_value; `where` is the path to it."""

    def __init__(self, code: str, where: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(f"{code}: {where}")
        self.code = code
        self.where = where
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class Override:
    strategy: Strategy | None = None
    max_attempts: int | None = None  # retries of this cause
    delays: tuple[float, ...] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def on(self, row: Row) -> Row:
        """The row with what the person wants instead."""
        made = row
        if self.strategy is not None:
            made = replace(made, strategy=self.strategy)
            if row.strategy is Strategy.GIVE_UP:
                made = replace(made, budget=1, delays=None)
        if self.max_attempts is not None:
            made = replace(made, budget=self.max_attempts, charge=Charge.NO)
        if self.delays is not None:
            made = replace(made, delays=self.delays)
        return made

    def added(self, step: Step, now: JobSpec) -> Step:
        """The step with the person's own values, which count more than ours."""
        changes = [
            *(
                Change("param", name, now.params.get(name), value)
                for name, value in self.params.items()
                if now.params.get(name) != value
            ),
            *(
                Change("env", name, now.env_vars.get(name), value)
                for name, value in self.env.items()
                if now.env_vars.get(name) != value
            ),
        ]
        made = step.adjustments
        for change in changes:
            made = made.with_change(change)
        return replace(step, adjustments=made, changes=(*step.changes, *changes))


@dataclass(frozen=True, slots=True)
class Overrides:
    by_name: Mapping[str, Override] = field(default_factory=dict)

    def of(self, diagnosis: Diagnosis) -> Override | None:
        """The category's, else the type's, else the default."""
        for name in (diagnosis.category.value, diagnosis.failure_type.value, DEFAULT):
            if name in self.by_name:
                return self.by_name[name]
        return None


def read(given: Mapping[str, Any] | None) -> Overrides:
    """A value may be the name of a strategy alone. Raises BadOverride."""
    found = {}
    for name, value in (given or {}).items():
        if name not in NAMES:
            raise BadOverride("unknown_failure", name, tuple(sorted(NAMES)))
        found[name] = _one(name, value)
    return Overrides(found)


def _one(name: str, value: Any) -> Override:
    if isinstance(value, str):
        return Override(strategy=_strategy(name, value))
    if not isinstance(value, Mapping):
        raise BadOverride("bad_value", name)
    for key in value:
        if key not in FIELDS:
            raise BadOverride("unknown_field", f"{name}.{key}", FIELDS)
    return Override(
        None
        if value.get("strategy") is None
        else _strategy(f"{name}.strategy", value["strategy"]),
        _attempts(f"{name}.max_attempts", value.get("max_attempts")),
        _delays(f"{name}.delays", value.get("delays")),
        _mapping(f"{name}.params", value.get("params")),
        {key: str(one) for key, one in _mapping(f"{name}.env", value.get("env")).items()},
    )


def _strategy(where: str, value: Any) -> Strategy:
    try:
        return Strategy(value)
    except ValueError:
        allowed = tuple(one.value for one in Strategy)
        raise BadOverride("bad_value", where, allowed) from None


def _attempts(where: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_ATTEMPTS:
        raise BadOverride("bad_value", where)
    return value


def _delays(where: str, value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) > MOST_ATTEMPTS:
        raise BadOverride("bad_value", where)
    for one in value:
        number = isinstance(one, int | float) and not isinstance(one, bool)
        if not number or not 0 <= one <= LONGEST_DELAY_S:
            raise BadOverride("bad_value", where)
    return tuple(float(one) for one in value)


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise BadOverride("bad_value", where)
    return value
