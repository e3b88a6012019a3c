"""The shapes of bodies other than jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runyard.domain import errors
from runyard.wire import job_types as types
from runyard.wire import refusals
from runyard.wire.jobs import JobSubmission


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BatchSubmission(_Body):
    """All of them are accepted, or none."""

    jobs: Annotated[list[JobSubmission], Field(min_length=1)]


class CancelFilter(_Body):
    """Which of the jobs that have not ended; empty fields match everything."""

    status: list[str] | None = None
    type: list[str] | None = None
    owner: list[str] | None = None
    q: str | None = None
    label: dict[str, str] | None = None
    array_id: str | None = None


class CancelMany(_Body):
    """One of `ids`, `filter` and `all`."""

    ids: Annotated[list[str | int], Field(max_length=50_000)] | None = None
    job_ids: Annotated[list[str | int], Field(max_length=50_000)] | None = None
    filter: CancelFilter | None = None
    all: bool = False
    force: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> CancelMany:
        given = [
            self.ids is not None or self.job_ids is not None,
            self.filter is not None,
            self.all,
        ]
        if sum(given) != 1:
            raise ValueError("give one of ids, filter and all")
        return self


class RetryRequest(_Body):
    fresh: bool = False


class EnqueueRequest(_Body):
    priority: Annotated[Literal["high", "medium", "low"], types.Lowered] | None = None


class FenceRequest(_Body):
    reason: Annotated[str, Field(max_length=500)] = ""


class KeyRequest(_Body):
    name: str
    role: Annotated[Literal["admin", "user", "viewer"], types.Lowered] = "user"
    expires_at: Annotated[float, types.NotBool, Field(gt=0, allow_inf_nan=False)] | None = None
    expires_in_s: Annotated[float, types.NotBool, Field(gt=0, allow_inf_nan=False)] | None = None


Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], body: Any) -> Model:
    """The body as `model`; UnknownField or InvalidRequest say what is wrong with it."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        names = tuple(model.model_fields)
        raise refusals.from_pydantic(error, errors.InvalidRequest, names) from None
