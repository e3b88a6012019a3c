"""The shapes of answers, for the OpenAPI page and for clients; the server builds them by hand."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from runyard.wire.attempt_answers import AttemptAnswer
from runyard.wire.diagnosis_answers import DiagnosisAnswer, ReasonAnswer
from runyard.wire.jobs import ArrayElement
from runyard.wire.receipt_answers import ReceiptAnswer

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


class MainMetricAnswer(BaseModel):
    """The one that tells most, over all attempts."""

    name: str
    direction: Literal["min", "max"] = Field(description="Which way is better.")
    last: float | str
    best: float | None = Field(description="NaN and infinities are never the best.")
    points: list[float | str] = Field(
        description="A small curve of at most 64 points, extremes kept."
    )


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


class CheckpointRuleAnswer(BaseModel):
    """Where it saves itself, and what becomes of that."""

    dir: str | None
    pattern: str | None
    every: int | None
    keep: int | None
    resume: Literal["auto", "never"]


class AskedServiceAnswer(BaseModel):
    """A helper beside the job: started here by a command, or run elsewhere at a url."""

    name: str
    url: str | None = None
    command: str | list[str] | None = None
    port: int | Literal["auto"] | None = None
    health: str | None = None
    ready_timeout_s: float | None = None
    restart: Literal["never", "on-failure"] | None = None
    env_vars: dict[str, str] | None = None


class JobAnswer(BaseModel):
    job_id: str
    id: int
    name: str
    status: Status
    stage: Literal["preflight", "pull", "prefetch", "starting", "running", "finishing"] | None
    progress: float
    reason: ReasonAnswer | None
    wait: WaitAnswer | None
    eta: EtaAnswer | None
    health: HealthAnswer
    metrics: dict[str, float | str] = Field(
        description="The newest of the best known; NaN and infinities as words."
    )
    main_metric: MainMetricAnswer | None = Field(description="In lists with `curves=true` only.")
    efficiency: EfficiencyAnswer | None = Field(
        description="Where its time went; null in lists and before the first attempt."
    )
    preflight: PreflightAnswer | None = Field(
        description="What was checked before its start; null in lists, and where nothing was."
    )
    diagnosis: DiagnosisAnswer | None
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
    attempt_number: int = Field(description="Of the newest attempt; 0 before the first.")
    attempt_limit: int = Field(
        description="Attempts that it may have; those that are free count not."
    )
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
    array: ArrayElement | None
    prefetch: list[str]
    checkpoint: CheckpointRuleAnswer | None
    services: list[AskedServiceAnswer]
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
    receipt: ReceiptAnswer | None


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


class CountsAnswer(BaseModel):
    counts: dict[Status, int] = Field(description="Every status is named.")
    total: int


class HealthzAnswer(BaseModel):
    status: Literal["ok"]
    version: str
