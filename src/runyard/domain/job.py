"""Jobs and attempts as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from runyard.domain.checkpoints.spec import CheckpointSpec
from runyard.domain.datasets import Dataset
from runyard.domain.distributed import Distributed
from runyard.domain.reasons import Reason
from runyard.domain.resources import GpuGrant, Request
from runyard.domain.slices import Gang, Slice
from runyard.domain.states import AttemptEnd, AttemptStatus, JobStatus, Stage


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """Smaller goes first."""
        return _RANKS[self]


_RANKS = {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}


class JobType(StrEnum):
    SINGLE = "single"
    DISTRIBUTED = "distributed"
    HYPERPARAMETER = "hyperparameter"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class Dependency:
    job_id: int
    on: Literal["success", "end"] = "success"


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """One element of a job array; at most `limit` of the array run at once (0: no limit)."""

    array_id: str
    index: int
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A helper that runs beside a job: started before it, ended with it."""

    name: str
    command: str | tuple[str, ...]
    port: int | None = None  # None: one from the pool
    health: str = "tcp"  # a path to GET, or "tcp"
    ready_timeout_s: float = 60.0
    restart: Literal["never", "on-failure"] = "never"
    env_vars: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """The client must renew within `length_s`, or the job is cancelled (or kept)."""

    length_s: float
    on_lost: Literal["cancel", "keep"] = "cancel"


@dataclass(frozen=True, slots=True)
class NotifyTarget:
    """Where somebody wants to be told, and of what; its address is often a secret itself."""

    type: Literal["webhook", "apprise", "feishu"]
    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    events: tuple[str, ...] = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a person asked for, validated, defaults filled in. Never changes after submit
    (priority, which can be changed, is kept on the job)."""

    name: str
    command: str | tuple[str, ...]
    job_type: JobType = JobType.SINGLE
    description: str = ""
    working_dir: str | None = None
    env_vars: Mapping[str, str] = field(default_factory=dict)
    base_env: Mapping[str, str] = field(default_factory=dict)  # PATH etc. as the CLI sent them
    image: str | None = None
    executor: str = "auto"
    request: Request = field(default_factory=lambda: Request(1000, 1024))
    port_names: tuple[str, ...] = ()
    max_retries: int = 3
    retry_delays: tuple[float, ...] | None = None
    dataset_ids: tuple[int, ...] = ()
    output_path: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    grace_s: float = 40.0
    array: ArrayPlace | None = None
    services: tuple[Service, ...] = ()
    service_urls: Mapping[str, str] = field(default_factory=dict)  # run by the client, not by us
    lease: LeaseTerms | None = None
    prefetch: tuple[str, ...] = ()  # addresses that must be here before it starts
    datasets: tuple[Dataset, ...] = ()  # those of dataset_ids, as they were at submit
    preflight: bool | None = None  # None until it is decided at submit
    pull: bool = False  # its image must be here before it is placed; decided at submit
    notify: tuple[NotifyTarget, ...] = ()
    checkpoint: CheckpointSpec | None = None
    distributed: Distributed | None = None  # set exactly when the job type says so
    memory_asked: bool = False  # a person wrote memory_gb: it may be enforced
    tty: bool = False
    isolation: Literal["none", "strict"] = "none"
    customer_id: int = 1
    workspace_id: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields of later releases, as sent

    @property
    def downloads(self) -> bool:
        """Whether something must be fetched before it starts."""
        return bool(self.prefetch or self.datasets)

    @property
    def gang(self) -> Gang | None:
        """What placement must know of a distributed job."""
        asked = self.distributed
        return None if asked is None else Gang(asked.nodes, asked.placement)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Resources as a person asked for them; None takes the fair-share default."""

    cpu_cores: float | None = None
    memory_gb: float | None = None
    gpu_count: float | None = None
    gpu_type: str | None = None
    port_count: int = 0


@dataclass(frozen=True, slots=True)
class Submission:
    """A valid request to run a job, before defaults. `spec.request` is filled in from `wanted`."""

    spec: JobSpec
    wanted: Wanted = Wanted()
    priority: Priority = Priority.MEDIUM
    max_retries: int | None = None
    grace_s: float | None = None
    depends_on: tuple[tuple[str, Literal["success", "end"]], ...] = ()  # public or numeric ids
    hold: bool = False


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job about to be stored; `ref` is the public id (`job-...`)."""

    ref: str
    spec: JobSpec
    priority: Priority
    owner: str
    submitted_at: float
    depends_on: tuple[Dependency, ...] = ()
    hold: bool = False
    ready: bool = True
    reason: Reason | None = None

    def as_job(self, job_id: int, shape_id: int, at: float) -> Job:
        """The job that it is once it is stored."""
        return Job(
            id=job_id,
            ref=self.ref,
            spec=self.spec,
            status=JobStatus.PENDING,
            priority=self.priority,
            owner=self.owner,
            submitted_at=at,
            queued_at=at,
            shape_id=shape_id,
            reason=self.reason,
            hold=self.hold,
            ready=self.ready,
        )


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    ref: str
    spec: JobSpec
    status: JobStatus
    priority: Priority
    owner: str
    submitted_at: float
    queued_at: float
    shape_id: int
    stage: Stage | None = None
    reason: Reason | None = None  # own reason; a ready waiting job shows its shape's instead
    progress: float = 0.0
    retry_count: int = 0  # every new attempt after the first
    charged: int = 0  # those that count against max_retries
    attempt_number: int = 0  # of the newest attempt; 0 before the first
    hold: bool = False
    ready: bool = True  # waiting, not held, dependencies met, no delay running
    not_before: float | None = None
    scheduled_at: float | None = None
    started_at: float | None = None
    completed_at: float | None = None

    def attempt_id(self, number: int | None = None) -> str:
        return f"{self.ref}.{self.attempt_number if number is None else number}"


@dataclass(frozen=True, slots=True)
class Attempt:
    attempt_id: str  # f"{job.ref}.{number}"
    job_id: int
    number: int
    status: AttemptStatus
    node_id: str
    machine_id: str
    boot_id: str
    executor: str
    request: Request
    tag: int  # rlimit fingerprint
    created_at: float
    stage: Stage = Stage.STARTING
    gpus: tuple[GpuGrant, ...] = ()
    ports: tuple[int, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    end: AttemptEnd | None = None
    exit_code: int | None = None  # null when a signal ended it or it is unknown, never invented
    signal: int | None = None
    cause: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    stop_seq: int = 0
    plan: Mapping[str, Any] | None = None
    diagnosis: Mapping[str, Any] | None = None
    receipt: Mapping[str, Any] | None = None
    slices: tuple[Slice, ...] = ()  # of one that runs on nodes of an executor
