"""The shapes of what the monitor answers."""

from __future__ import annotations

from pydantic import BaseModel, Field

from runyard.wire.answers import (
    EfficiencyAnswer,
    EtaAnswer,
    HealthAnswer,
    Status,
    Time,
)
from runyard.wire.machine_answers import GpuAnswer, NodeAnswer
from runyard.wire.queue_answers import GateAnswer

Value = float | str  # NaN and infinities as words


class LatestAnswer(BaseModel):
    value: Value
    step: int | None
    at: Time


class UseAnswer(BaseModel):
    """What an attempt uses against what it was given; null where it was not measured."""

    at: Time | None
    cpu_cores: float | None
    cpu_cores_given: float
    cpu_ratio: float | None
    memory_gb: float | None
    memory_gb_given: float
    memory_ratio: float | None
    gpu_util: float | None
    gpu_memory_percent: float | None
    processes: int | None


class ProgressAnswer(BaseModel):
    percent: float
    step: int | None
    total_steps: int | None
    epoch: float | None
    total_epochs: float | None
    source: str | None = Field(description="What told it; null when nothing did.")
    phase: str | None
    step_at: Time | None = Field(description="When the last new step was seen.")


class RunningJobAnswer(BaseModel):
    job_id: str
    id: int
    name: str
    owner: str
    status: Status
    stage: str | None
    node: str | None
    gpus: list[int]
    attempt: int
    started_at: Time | None
    progress: ProgressAnswer
    eta: EtaAnswer | None
    health: HealthAnswer
    metrics: dict[str, Value]
    use: UseAnswer | None


class JobNowAnswer(RunningJobAnswer):
    metrics: dict[str, LatestAnswer]  # type: ignore[assignment]
    system: dict[str, LatestAnswer] = Field(description="What was measured of its processes.")
    efficiency: EfficiencyAnswer | None


class NodeNowAnswer(NodeAnswer):
    at: Time | None = Field(description="When it was measured last.")
    metrics: dict[str, Value]


class GpuNowAnswer(GpuAnswer):
    at: Time | None
    metrics: dict[str, Value] = Field(
        description="util, memory_mb, memory_percent, temperature, power_w, ecc_errors, xid, "
        "throttled, as far as the driver tells."
    )


class OpenAlertsAnswer(BaseModel):
    open: int = Field(description="Alerts that are not closed.")
    by_level: dict[str, int]


class MonitorStatusAnswer(BaseModel):
    at: Time
    dispatching: bool
    max_concurrent: int
    counts: dict[str, int]
    gates: list[GateAnswer]
    nodes: list[NodeNowAnswer]
    gpus: list[GpuNowAnswer]
    running: list[RunningJobAnswer]
    alerts: OpenAlertsAnswer
