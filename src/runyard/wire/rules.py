"""The shapes of alert rules and of saved evidence."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from runyard.wire import job_types as types
from runyard.wire.answers import Time

Level = Annotated[Literal["warning", "error", "critical"], types.Lowered]
ActionName = Literal["notify", "cancel", "checkpoint-and-stop", "retry"]
Text = Annotated[str, StringConstraints(max_length=2000)]
Length = Annotated[
    str | float | None,
    Field(description="How long it must hold: seconds, or 90s, 5m, 1h. Also in the expression."),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class RuleRequest(_Body):
    name: Text
    expression: Annotated[Text, Field(description="`loss > 10 for 5m`")]
    length: Annotated[Length, Field(alias="for")] = None
    level: Level = "warning"
    actions: Annotated[list[ActionName], Field(max_length=4)] = []
    enabled: bool = True


class RuleChange(_Body):
    """What is left out stays as it is."""

    name: Text | None = None
    expression: Text | None = None
    length: Annotated[Length, Field(alias="for")] = None
    level: Level | None = None
    actions: Annotated[list[ActionName], Field(max_length=4)] | None = None
    enabled: bool | None = None


class RulePreviewRequest(_Body):
    """Of one job, or of the newest jobs that ran since a time."""

    expression: Text
    length: Annotated[Length, Field(alias="for")] = None
    job: str | int | None = None
    since: str | float | None = None


class RuleAnswer(BaseModel):
    id: int
    name: str
    expression: str
    length: Annotated[float, Field(alias="for", description="Seconds it must hold.")]
    level: Literal["warning", "error", "critical"]
    actions: list[ActionName]
    enabled: bool
    broken: str | None = Field(description="Why it cannot be evaluated.")
    created_by: str
    created_at: Time


class FiringAnswer(BaseModel):
    job_id: str
    since: Time = Field(description="From when on it held.")
    at: Time
    until: Time | None


class RulePreviewAnswer(BaseModel):
    expression: str
    length: Annotated[float, Field(alias="for")]
    times: int
    firings: list[FiringAnswer]
    jobs: list[str] = Field(description="Those whose history was looked at.")
    unknown: list[str] = Field(description="Metrics of which there is no history.")


class EvidenceAnswer(BaseModel):
    name: str
    size: int
    at: Time


BODIES: tuple[Any, ...] = (RuleRequest, RuleChange, RulePreviewRequest)
