"""The shapes of what the web page asks beside jobs: previews, stories, capacity, about."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from runyard.wire.answers import SuggestionAnswer, Time, WaitAnswer, Warning_
from runyard.wire.diagnosis_answers import (
    ChangeAnswer,
    DiagnosisAnswer,
    PlanAnswer,
    ProofLineAnswer,
    ReasonAnswer,
)


class ProblemFieldAnswer(BaseModel):
    field: str
    code: str
    message: str
    nearest: str | None = Field(None, description="The name that was meant, perhaps.")


class RequestAnswer(BaseModel):
    """What it would be given, with this server's defaults."""

    cpu_cores: float
    memory_gb: float
    gpu_count: float
    gpu_type: str | None


class PlacementAnswer(BaseModel):
    node_id: str
    node: str
    executor: str
    gpus: list[int] = Field(description="Indexes on that node.")


class PreviewAnswer(BaseModel):
    """What a submit would do; nothing was kept."""

    valid: bool
    problems: list[ProblemFieldAnswer]
    warnings: list[Warning_]
    starts_now: bool
    placement: PlacementAnswer | None
    wait: WaitAnswer | None
    request: RequestAnswer | None
    suggestion: SuggestionAnswer | None
    job: dict[str, Any] | None = Field(description="The body as it was read, also from YAML.")
    cli: str | None = Field(description="The same as a command line.")
    yaml: str | None = Field(description="The same as a job file.")


class StoryLineAnswer(BaseModel):
    attempt: int
    rank: int
    number: int = Field(description="Counted from 1; 0 is a line of the kernel's log.")
    text: str


class ChapterAnswer(BaseModel):
    """One event, with why it happened and what was done about it."""

    id: int
    code: str
    at: Time
    actor: str
    attempt: int | None
    params: dict[str, Any]
    cause: ReasonAnswer | None
    action: ReasonAnswer | None
    changes: list[ChangeAnswer]
    lines: list[StoryLineAnswer] = Field(description="Lines of the log that prove the cause.")
    end: str | None = Field(description="How the attempt ended, where this tells of an end.")
    exit_code: int | None
    signal: int | None


class ConfigAnswer(BaseModel):
    """What was submitted, and what the newest attempt really got."""

    submitted: dict[str, Any] = Field(description="Fields of a job file; secrets are masked.")
    effective: dict[str, Any]
    changes: list[ChangeAnswer]
    cli: str
    yaml: str


class NodeRoomAnswer(BaseModel):
    node_id: str
    node: str
    cpu_cores: float
    cpu_cores_used: float
    memory_gb: float
    memory_gb_used: float
    gpu_count: int
    gpu_count_used: float
    attempts: int


class CapacityAnswer(BaseModel):
    """What attempts hold of what there is."""

    slots: int = Field(description="max_concurrent")
    slots_used: int
    nodes: list[NodeRoomAnswer]


class PastWaitAnswer(BaseModel):
    job_id: str
    at: Time = Field(description="When it was placed.")
    seconds: float


class WaitHistoryAnswer(BaseModel):
    waits: list[PastWaitAnswer] = Field(description="Of the newest jobs, oldest first.")
    median_s: float | None
    p90_s: float | None


class DatabaseAnswer(BaseModel):
    kind: Literal["sqlite", "postgresql"]
    size_bytes: int | None


class AboutAnswer(BaseModel):
    version: str
    node_id: str
    uptime_s: float
    database: DatabaseAnswer
    jobs: dict[str, int] = Field(description="By status.")
    nodes: int
    executors: dict[str, bool] = Field(description="Which of them can start something now.")
    settings: dict[str, float | str | list[float] | list[str]] = Field(
        description="Those that matter to people; none is secret."
    )


class PassedOverAnswer(BaseModel):
    path: str
    step: int | None
    why: str | None = Field(description="What is wrong with it: truncated, missing_file ...")


class ResumedAnswer(BaseModel):
    path: str
    step: int | None
    passed_over: list[PassedOverAnswer] = Field(description="Newer ones that are not whole.")


class ResumedDownloadAnswer(BaseModel):
    """A download that went on where it had been cut off."""

    name: str
    uri: str
    bytes: int
    resumed_bytes: int = Field(description="That were there already and not fetched again.")


class FailureAnswer(BaseModel):
    attempt: int
    exit_code: int | None
    signal: int | None
    cause: str | None
    failure_type: str | None
    category: str | None
    confidence: float | None
    explanation: ReasonAnswer | None
    root: ProofLineAnswer | None
    strategy: str | None
    plan: ReasonAnswer | None
    changes: list[ChangeAnswer]
    delay_s: float | None
    charged: bool | None
    checkpoint: ResumedAnswer | None = Field(
        description="What the attempt after it went on from; null: from the start."
    )


class ExplainedEndAnswer(BaseModel):
    attempt_id: str
    end: str
    cause: str | None
    exit_code: int | None
    signal: int | None


class ExplainedWaitAnswer(ReasonAnswer):
    position: int | None
    est_start_low: float | None = Field(description="Seconds since 1970.")
    est_start_high: float | None
    blockers: list[str]


class ReproduceAnswer(BaseModel):
    """The command as the attempt ran it that failed last, places and parameters filled in;
    secrets are hidden."""

    attempt: int
    command: str | list[str]
    params: dict[str, Any]
    working_dir: str | None
    env: dict[str, str]
    batch_scale: str | float


class SavedEvidenceAnswer(BaseModel):
    attempt: int
    files: list[str]


class ExplainAnswer(BaseModel):
    job_id: str
    name: str
    status: str
    reason: ReasonAnswer | None
    retry_count: int
    max_retries: int
    command: str | list[str]
    wait: ExplainedWaitAnswer | None
    end: ExplainedEndAnswer | None
    log_of: str | None = Field(description="The service whose log it is; null: the job's own.")
    log_tail: list[str]
    diagnosis: DiagnosisAnswer | None
    plan: PlanAnswer | None
    changes: list[ChangeAnswer]
    failures: list[FailureAnswer]
    next: ReasonAnswer
    reproduce: ReproduceAnswer
    downloads: list[ResumedDownloadAnswer]
    evidence: list[SavedEvidenceAnswer]
