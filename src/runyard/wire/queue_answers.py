"""The shapes of the queue as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from runyard.wire.answers import JobAnswer


class GateAnswer(BaseModel):
    """No new start while it is closed; a limit of 100 is off."""

    name: Literal["cpu", "memory", "disk"]
    value: float = Field(description="Percent.")
    limit: float
    closed: bool


class QueueAnswer(BaseModel):
    dispatching: bool
    max_concurrent: int
    counts: dict[str, int]
    waiting: list[JobAnswer]
    running: list[JobAnswer]
    gates: list[GateAnswer]


class DispatchAnswer(BaseModel):
    dispatching: bool
