"""The shapes of answers about notifications."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from runyard.wire.answers import Time
from runyard.wire.diagnosis_answers import ReasonAnswer


class NotificationTargetAnswer(BaseModel):
    id: int
    name: str
    type: Literal["webhook", "apprise", "feishu"]
    url: str = Field(description="Without logins, queries and keys.")
    secret: str | None = Field(description="Masked; null when there is none.")
    events: list[str]
    enabled: bool
    created_by: str
    created_at: Time


class DeliveryTarget(BaseModel):
    id: int | None = Field(description="Of a target of the workspace.")
    name: str | None
    type: str
    url: str | None


class DeliveryAnswer(BaseModel):
    id: int
    delivery: str = Field(description="X-Runyard-Delivery, the same for every repeat.")
    event: str
    job_id: str | None
    target: DeliveryTarget
    status: Literal["waiting", "sending", "sent", "given_up"]
    tries: int
    created_at: Time
    due_at: Time | None = Field(description="When it is tried next.")
    sent_at: Time | None
    error: ReasonAnswer | None = Field(description="Of the last try.")
