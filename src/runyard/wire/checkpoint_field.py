"""The field `checkpoint` of a job."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from runyard.domain.checkpoints.spec import CheckpointSpec
from runyard.wire import job_fields
from runyard.wire import job_types as types

_LONGEST_PATTERN = 500
_MOST = 1_000_000_000


class JobCheckpoint(BaseModel):
    """Where a job saves itself, how its checkpoints are named, and what becomes of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dir: types.Path | None = None
    pattern: Annotated[str, Field(min_length=1, max_length=_LONGEST_PATTERN)] | None = None
    every: Annotated[int, types.NotBool, Field(ge=1, le=_MOST)] | None = None
    keep: Annotated[int, types.NotBool, Field(ge=1, le=_MOST)] | None = None
    resume: Annotated[Literal["auto", "never"], types.Lowered] = "auto"

    @field_validator("pattern")
    @classmethod
    def _below_the_directory(cls, pattern: str | None) -> str | None:
        if pattern and ("\0" in pattern or pattern.startswith("/")):
            job_fields.refuse("bad_value", "is matched with names below the checkpoint directory")
        return pattern

    def to_spec(self) -> CheckpointSpec:
        return CheckpointSpec(self.dir, self.pattern, self.every, self.keep, self.resume)
