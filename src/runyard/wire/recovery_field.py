"""What a job says of its own recovery: per failure type, category or `default`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from runyard.domain.nearest_name import nearest
from runyard.domain.recovery import overrides
from runyard.domain.recovery.policy import Strategy
from runyard.wire import job_fields

NEVER = "never"
_OTHER_NAMES = {"retries": "max_attempts"}  # that people write as well


def read(value: Any) -> dict[str, Any]:
    """Checked, and with one name for each thing."""
    if not isinstance(value, dict):
        job_fields.refuse("wrong_type", "must be an object of failures and what to do about them")
    found = {str(name): _one(wanted) for name, wanted in value.items()}
    try:
        overrides.read(found)
    except overrides.BadOverride as error:
        near = nearest(error.where.rpartition(".")[2], error.allowed)
        hint = f"; did you mean '{near}'?" if near else ""
        if error.code == "bad_value" and error.allowed and not near:
            hint = f"; one of {', '.join(error.allowed)}"
        job_fields.refuse(error.code, f"{error.where} cannot be understood{hint}")
    job_fields.kept_object(found)
    return found


def _one(wanted: Any) -> Any:
    if wanted == NEVER:
        return Strategy.GIVE_UP.value
    if not isinstance(wanted, Mapping):
        return wanted
    told = {_OTHER_NAMES.get(str(name), str(name)): value for name, value in wanted.items()}
    if told.get("strategy") == NEVER:
        told["strategy"] = Strategy.GIVE_UP.value
    return told


_STRATEGY = {"type": "string", "enum": [NEVER, *(one.value for one in Strategy)]}
_SCHEMA = {
    "type": "object",
    "description": "By failure type, category, or default: a strategy, or an object.",
    "additionalProperties": {
        "anyOf": [
            _STRATEGY,
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "strategy": _STRATEGY,
                    "max_attempts": {"type": "integer", "minimum": 0},
                    "delays": {"type": "array", "items": {"type": "number", "minimum": 0}},
                    "params": {"type": "object"},
                    "env": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
        ]
    },
}
JobRecovery = Annotated[dict[str, Any], PlainValidator(read), WithJsonSchema(_SCHEMA)]
