"""The shapes of answers, for the OpenAPI page and for clients; the server builds them by hand."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

Status = Literal[
    "pending",
    "scheduled",
    "running",
    "completed",
    "failed",
    "retrying",
    "cancelling",
    "cancelled",
]
Time = str  # ISO 8601 in UTC with microseconds


class Problem(BaseModel):
    """Every error has this shape."""

    code: str
    message: str
    params: dict[str, Any]
    request_id: str


class Warning_(BaseModel):
    code: str
    params: dict[str, Any]


class SuggestionAnswer(BaseModel):
    """What earlier runs of the same job used at most, with some room for memory."""

    from_job: str
    memory_gb: float | None
    gpu_memory_mb: int | None
    seconds: int | None


class SubmitAnswer(BaseModel):
    job_id: str = Field(examples=["job-7k2m9q4x"])
    id: int
    status: Status
    submitted_at: Time
    warnings: list[Warning_]
    suggestion: SuggestionAnswer | None = None


class BatchAnswer(BaseModel):
    jobs: list[SubmitAnswer]
    count: int


class ReasonAnswer(BaseModel):
    code: str
    params: dict[str, Any]


class WaitAnswer(ReasonAnswer):
    position: int | None
    est_start_low: Time | None
    est_start_high: Time | None
    blockers: list[str]


class HealthAnswer(BaseModel):
    level: Literal["ok", "warning", "error", "critical", "unknown"]
    code: str | None
    params: dict[str, Any]
    since: Time | None


class EtaAnswer(BaseModel):
    seconds: float
    low: float
    high: float
    at: Time
    basis: str


class LossesAnswer(BaseModel):
    queue: float
    setup: float
    lost_steps: float
    recovery: float
    stall: float


class EfficiencyAnswer(BaseModel):
    ratio: float | None = Field(description="Of productive time to all time; null without steps.")
    productive_s: float
    wall_s: float
    losses: LossesAnswer


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
    services: list[ServiceAnswer]
    params: dict[str, Any]
    changes: list[dict[str, Any]] = Field(
        description="What a plan changed against the attempt before; empty in a job's answer."
    )
    plan: dict[str, Any] | None = Field(description="What the next attempt does differently.")
    diagnosis: dict[str, Any] | None = Field(description="Why it failed, with the proof.")


class DependencyAnswer(BaseModel):
    job: str
    on: Literal["success", "end"]


class CheckAnswer(BaseModel):
    check: str
    verdict: Literal["pass", "warn", "fail"]
    code: str
    params: dict[str, Any]


class PreflightAnswer(BaseModel):
    verdict: Literal["pass", "warn", "fail"]
    seconds: float
    checks: list[CheckAnswer]


class JobAnswer(BaseModel):
    job_id: str
    id: int
    name: str
    status: Status
    stage: Literal["preflight", "prefetch", "starting", "running", "finishing"] | None
    progress: float
    reason: ReasonAnswer | None
    wait: WaitAnswer | None
    eta: EtaAnswer | None
    health: HealthAnswer
    metrics: dict[str, float | str] = Field(
        description="The newest of the best known; NaN and infinities as words."
    )
    efficiency: EfficiencyAnswer | None = Field(
        description="Where its time went; null in lists and before the first attempt."
    )
    preflight: PreflightAnswer | None = Field(
        description="What was checked before its start; null in lists, and where nothing was."
    )
    diagnosis: dict[str, Any] | None
    attempt: AttemptAnswer | None = Field(description="The newest attempt.")
    submitted_at: Time
    queued_at: Time
    scheduled_at: Time | None
    started_at: Time | None
    completed_at: Time | None
    owner: str
    priority: Literal["high", "medium", "low"]
    hold: bool
    retry_count: int
    charged: int
    depends_on: list[DependencyAnswer]
    receipt_url: str | None
    description: str
    job_type: str
    command: str | list[str]
    working_dir: str | None
    env_vars: dict[str, str] = Field(description="Values whose name looks secret are masked.")
    image: str | None
    executor: str
    cpu_cores: float
    memory_gb: float
    gpu_count: float
    gpu_type: str | None
    ports: int | list[str]
    max_retries: int
    retry_delays: list[float] | None
    labels: dict[str, str]
    customer_id: int
    workspace_id: int
    dataset_ids: list[int]
    output_path: str | None
    params: dict[str, Any]
    timeout_s: float | None
    grace_s: float
    array: dict[str, Any] | None
    prefetch: list[str]
    checkpoint: dict[str, Any] | None
    services: list[dict[str, Any]]
    notify: list[dict[str, Any]] | None
    recovery: dict[str, Any] | None
    lease_s: float | None
    on_lease_lost: str | None
    distributed: dict[str, Any] | None
    tty: bool
    isolation: str


class CancelAnswer(BaseModel):
    job_id: str
    status: Status
    reason: ReasonAnswer | None
    receipt: dict[str, Any] | None


class LeaseAnswer(BaseModel):
    job_id: str
    lease_s: float
    expires_at: Time


class AlertAnswer(BaseModel):
    id: int
    key: str = Field(description="The same trouble has the same key.")
    level: Literal["warning", "error", "critical"]
    code: str
    params: dict[str, Any]
    job_id: str | None
    attempt_id: str | None
    node_id: str | None
    status: Literal["open", "acknowledged", "closed"]
    times: int = Field(description="How often it was found while it was not closed.")
    opened_at: Time
    seen_at: Time = Field(description="When it was last found.")
    closed_at: Time | None
    acknowledged_by: str | None
    evidence: dict[str, Any]
    actions_taken: list[dict[str, Any]]


class RefusedCancel(BaseModel):
    job_id: str
    code: str
    message: str


class CancelManyAnswer(BaseModel):
    cancelled: list[str]
    cancelling: list[str]
    refused: list[RefusedCancel]


class EventAnswer(BaseModel):
    id: int
    code: str
    at: Time
    actor: str
    job_id: str | None
    attempt_id: str | None
    params: dict[str, Any]


class QueueAnswer(BaseModel):
    dispatching: bool
    max_concurrent: int
    counts: dict[str, int]
    waiting: list[JobAnswer]
    running: list[JobAnswer]
    gates: list[dict[str, Any]]


class DispatchAnswer(BaseModel):
    dispatching: bool


class LoadAnswer(BaseModel):
    cpu: float
    memory: float
    disk: float


class NodeAnswer(BaseModel):
    node_id: str
    name: str
    machine_id: str
    url: str
    epoch: int
    cpu_cores: float
    memory_gb: float
    gpu_count: int
    load: LoadAnswer | None
    executors: list[str]
    drained: bool
    heartbeat_at: Time


class GpuAnswer(BaseModel):
    node_id: str
    index: int
    uuid: str
    name: str
    memory_mb: int
    used_mb: int | None
    group: str
    fenced: bool
    fence_reason: str | None
    locked_by_other_server: bool
    holders: list[dict[str, Any]]
    jobs: list[dict[str, Any]]


class KeyAnswer(BaseModel):
    key_id: int
    name: str
    role: Literal["admin", "user", "viewer"]
    prefix: str
    created_at: Time
    last_used_at: Time | None
    expires_at: Time | None
    local: bool


class NewKeyAnswer(KeyAnswer):
    secret: str = Field(description="Shown this once.")


class SeriesAnswer(BaseModel):
    steps: list[int | None]
    times: list[float] = Field(description="Seconds since 1970.")
    values: list[float | str] = Field(description="NaN and infinities as words.")
    sampled: bool = Field(description="There are more points than these.")


class MetricsAnswer(BaseModel):
    series: dict[str, SeriesAnswer]


class HealthzAnswer(BaseModel):
    status: Literal["ok"]
    version: str
