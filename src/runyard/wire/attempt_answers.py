"""The shape of an attempt in answers: its ends, its grants, its services and its ranks."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from runyard.wire.diagnosis_answers import ChangeAnswer, DiagnosisAnswer, PlanAnswer

Time = str  # as in the other answers


class GpuShare(BaseModel):
    index: int
    uuid: str
    share: float


class ServiceAnswer(BaseModel):
    name: str
    state: Literal["starting", "ready", "restarting", "ended"] | None = Field(
        None, description="Null where only another server knows it."
    )
    healthy: bool | None = None
    port: int
    url: str | None = None
    restarts: int
    pid: int | None
    exit_code: int | None
    signal: int | None


class SliceAnswer(BaseModel):
    """The part of an attempt on one node of an executor."""

    index: int = Field(description="Its NODE_RANK.")
    node: str
    name: str = Field(description="What the executor calls the node.")
    address: str
    gpus: list[GpuShare]
    ports: list[int]


class RankAnswer(BaseModel):
    """One rank of a distributed attempt."""

    rank: int
    state: Literal["starting", "running", "ended"] | None = Field(
        None, description="Null where only another server knows it."
    )
    pid: int | None
    exit_code: int | None
    signal: int | None
    ended_at: Time | None


class AttemptAnswer(BaseModel):
    attempt_id: str
    job_id: str
    number: int
    status: Literal["starting", "running", "stopping", "ended"]
    end: Literal["completed", "failed", "cancelled", "timed_out", "lost", "never_started"] | None
    stage: str
    exit_code: int | None = Field(description="Null when a signal ended it or it is unknown.")
    signal: int | None
    cause: str | None
    created_at: Time
    started_at: Time | None
    ended_at: Time | None
    node: str
    executor: str
    gpus: list[GpuShare]
    ports: list[int] = Field(description="The job's own first, then those of its services.")
    slices: list[SliceAnswer] = Field(
        description="Of an attempt on nodes of an executor; empty on a server's own machine."
    )
    services: list[ServiceAnswer]
    ranks: list[RankAnswer] = Field(
        description="Of a distributed job; empty where torchrun starts its ranks."
    )
    params: dict[str, Any]
    changes: list[ChangeAnswer] = Field(
        description="What a plan changed against the attempt before; empty in a job's answer."
    )
    plan: PlanAnswer | None = Field(description="What the next attempt does differently.")
    diagnosis: DiagnosisAnswer | None = Field(description="Why it failed, with the proof.")
