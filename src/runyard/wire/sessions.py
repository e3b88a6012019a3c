"""Logging in with a browser."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runyard.wire.answers import Time


class LoginRequest(BaseModel):
    """A key, or the token of a login link; one of the two."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    token: Annotated[str, Field(min_length=1, max_length=512)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> LoginRequest:
        if (self.key is None) == (self.token is None):
            raise ValueError("give one of key and token")
        return self


class SessionAnswer(BaseModel):
    """Who asks, and what they may do."""

    name: str = Field(description="Of the key; jobs that it submits belong to this owner.")
    role: Literal["admin", "user", "viewer"]
    scopes: list[Literal["read", "write", "admin"]] = Field(
        description="write: submit, and act on own jobs; admin: everything."
    )
    expires_at: Time | None = Field(description="Later with every use; null: it does not end.")
    csrf: str | None = Field(
        description="For the header X-CSRF-Token of every change; null with a key."
    )


class LoginLinkAnswer(BaseModel):
    token: str = Field(description="For one login; in a link it goes after the #.")
    path: str = Field(description="Of the page that uses it, with the token.")
    expires_at: Time


BODIES = (LoginRequest,)
