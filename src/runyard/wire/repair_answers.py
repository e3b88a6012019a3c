"""Answers about checkpoints, datasets, files, and what earlier runs suggest."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from runyard.wire.answers import Time
from runyard.wire.diagnosis_answers import ReasonAnswer


class CheckpointAnswer(BaseModel):
    id: int
    path: str
    attempt: int
    family: str
    step: int | None
    size_bytes: int
    saved_at: Time
    verdict: str
    why: ReasonAnswer | None
    metrics: dict[str, Any]
    reported: bool
    checked_at: Time | None


class DatasetAnswer(BaseModel):
    id: int
    name: str
    uri: str
    hash: str | None
    variable: str
    created_by: str
    created_at: Time


class FileAnswer(BaseModel):
    path: str
    size_bytes: int
    changed_at: Time


class FilesAnswer(BaseModel):
    dir: str
    files: list[FileAnswer]
    truncated: bool
