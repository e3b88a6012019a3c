"""The shape of a receipt."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class SentSignalAnswer(BaseModel):
    model_config = {"extra": "allow"}

    signal: str | int
    at: float | str | None = None
    target: Any = None


class ReturnedGpuAnswer(BaseModel):
    model_config = {"extra": "allow"}

    index: int
    memory_before_mb: float | None = None
    memory_after_mb: float | None = None


class ReceiptAnswer(BaseModel):
    """Proof of what an end gave back. Fields may be missing where nothing was to be told."""

    model_config = {"extra": "allow"}

    requested_by: str | None = None
    requested_at: float | str | None = None
    stage: str | None = None
    signals: list[SentSignalAnswer] = []
    processes_ended: int | None = None
    proof: Any = None
    stuck: list[Any] = []
    gpus: list[ReturnedGpuAnswer] = []
    ports: list[int] = []
    shm_bytes: int | None = None
    temp_removed: bool | None = None
    seconds: float | None = None
    ended_at: float | str | None = None
