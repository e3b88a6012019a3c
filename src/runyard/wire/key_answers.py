"""The shapes of API keys."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from runyard.wire.answers import Time


class KeyAnswer(BaseModel):
    key_id: int
    name: str
    role: Literal["admin", "user", "viewer"]
    prefix: str
    created_at: Time
    last_used_at: Time | None
    expires_at: Time | None
    local: bool


class NewKeyAnswer(KeyAnswer):
    secret: str = Field(description="Shown this once.")
