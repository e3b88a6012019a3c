"""The shapes of reasons, diagnoses and plans."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class ReasonAnswer(BaseModel):
    """Words for it are the reader's business."""

    code: str
    params: dict[str, Any]


class ProofLineAnswer(BaseModel):
    rank: int
    number: int = Field(description="Counted from 1; 0 is a line of the kernel's log.")
    text: str
    kind: str


class DiagnosisAnswer(BaseModel):
    failure_type: str
    category: str
    confidence: float
    fingerprint: str = Field(description="Equal for the same failure of another attempt.")
    explanation: ReasonAnswer
    root: ProofLineAnswer | None
    proof: list[ProofLineAnswer]
    cascade: list[ProofLineAnswer] = Field(description="What only followed from it.")
    facts: dict[str, Any]


class ChangeAnswer(BaseModel):
    kind: Literal["param", "flag", "env", "batch_scale"]
    name: str
    before: Any
    after: Any


class PlanAnswer(BaseModel):
    strategy: str
    reason: ReasonAnswer
    changes: list[ChangeAnswer] = Field(description="Against the attempt that failed.")
    adjustments: dict[str, Any] = Field(description="All changes, against what was submitted.")
    delay_s: float
    charged: bool = Field(description="Whether it counts against max_retries.")
    resume: dict[str, Any]
    fence: list[str]
    avoid: list[str]
    wait_for: dict[str, Any] | None
    clear: list[str]
