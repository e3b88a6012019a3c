"""The shapes of fire drills."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from runyard.wire.answers import Time


class DrillRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fault: str = Field(description="kill9, oom, nan, disk, hang, corrupt or server.")


class FaultAnswer(BaseModel):
    job_id: str
    at: Time
    fault: str
    attempt: int = Field(description="The attempt that it was done to.")
    progress: float = Field(description="Of the job at that moment.")
    processes: int | None = Field(None, description="How many it was done to.")
    path: str | None = Field(None, description="The file that was cut in half.")
    step: int | None = Field(None, description="Of the checkpoint that was.")
    bad_step: int | None = Field(None, description="The first that a bad loss was told for.")
    pid: int | None = Field(None, description="Of the main process that a new server must find.")
