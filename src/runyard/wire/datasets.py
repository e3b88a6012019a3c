"""A dataset as it is registered."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from runyard.domain.datasets import NewDataset
from runyard.wire import job_fields

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class DatasetRequest(BaseModel):
    """Data that jobs name by its number. `uri` is whatever `prefetch` takes."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="DatasetRequest")

    name: Annotated[str, Field(description="Letters, digits, `.`, `_` and `-`.")]
    uri: Annotated[str, Field(min_length=1, max_length=4096)]
    hash: Annotated[str, Field(description="`sha256:` and 64 hex digits.")] | None = None

    @field_validator("name")
    @classmethod
    def _can_be_a_variable(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            job_fields.refuse("bad_name", "must be letters, digits, '.', '_' and '-' only")
        return name

    @field_validator("uri")
    @classmethod
    def _can_be_fetched(cls, uri: str) -> str:
        job_fields.prefetch([uri])
        return uri

    @field_validator("hash")
    @classmethod
    def _is_one(cls, told: str | None) -> str | None:
        if told is not None and not _HASH.fullmatch(told.lower()):
            job_fields.refuse("bad_value", "must be sha256: and 64 hex digits")
        return told.lower() if told else None

    def to_new(self) -> NewDataset:
        return NewDataset(self.name, self.uri, self.hash)


BODIES = (DatasetRequest,)
