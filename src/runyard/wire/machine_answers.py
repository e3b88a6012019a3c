"""The shapes of nodes and their GPUs."""

from __future__ import annotations

from pydantic import BaseModel, Field

from runyard.wire.answers import Time


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
    kind: str = Field(description="server, or the name of the executor that offers it.")
    address: str = Field(description="Where its ranks are reached; empty of a server.")
    labels: dict[str, str]
    alive: bool = Field(description="As its executor last told.")
    cluster: str


class HolderAnswer(BaseModel):
    pid: int
    user: str
    name: str


class GpuJobAnswer(BaseModel):
    job_id: str | None
    attempt_id: str
    share: float


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
    holders: list[HolderAnswer] = Field(description="Processes that are not of our jobs.")
    jobs: list[GpuJobAnswer]
