"""What routes read from a request: the yard, who asks, which job, how long to wait."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Path, Query
from starlette.requests import Request

from runyard.domain import errors
from runyard.engine.access.actor import Actor
from runyard.engine.yard import Yard
from runyard.wire.job_fields import is_job_ref

LONGEST_WAIT_S = 600.0

Ref = Annotated[str, Path(description="The job's id: `job-...`, or its number.")]
Wait = Annotated[
    float | None,
    Query(
        ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False, description="Seconds to wait for the end."
    ),
]


def yard(request: Request) -> Yard:
    return cast(Yard, request.app.state.yard)


def actor(request: Request) -> Actor:
    found = request.scope.get("actor")
    if found is None:
        raise errors.Unauthenticated
    return cast(Actor, found)


def admin(request: Request) -> Actor:
    found = actor(request)
    found.must_be_admin()
    return found


def job_ref(ref: str) -> str:
    """`ref`, when it can be an id at all; spares the store numbers it cannot hold."""
    if not is_job_ref(ref):
        raise errors.JobNotFound(job=ref[:100])
    return ref
