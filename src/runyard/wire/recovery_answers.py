"""The shapes of recovery's answers, for the OpenAPI page and for clients."""

from __future__ import annotations

from pydantic import BaseModel, Field

from runyard.wire.answers import Status
from runyard.wire.diagnosis_answers import ChangeAnswer, DiagnosisAnswer, PlanAnswer


class AnalysisAnswer(BaseModel):
    job_id: str
    attempt_id: str
    status: Status
    failure_type: str | None = Field(description="Null where nothing went wrong.")
    diagnosis: DiagnosisAnswer | None
    plan: PlanAnswer | None = Field(description="What another attempt does differently.")
    changes: list[ChangeAnswer]
