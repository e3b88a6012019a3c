"""Shapes of logs that cross HTTP."""

from __future__ import annotations

from pydantic import BaseModel, Field


class LogGap(BaseModel):
    """Where the middle of a long log was dropped to keep it within its limit."""

    at: int = Field(description="Place in `logs` of the line that shows the gap.")
    from_byte: int
    to_byte: int
    bytes: int
    lines: int | None = Field(
        description="Lines that were dropped; null when nobody counted them."
    )


class LogDropped(BaseModel):
    """Where lines were dropped, in a log as a whole."""

    from_byte: int
    to_byte: int
    bytes: int
    before: int = Field(description="Number of the last line before it; -1 when there is none.")
    after: int = Field(description="Number of the line that goes on behind it.")


class LogOutline(BaseModel):
    total: int = Field(description="Lines, dropped and unfinished ones included.")
    unfinished: bool = Field(description="The last line has no end yet.")
    resume: int = Field(
        description="The byte to follow from; a last line without an end is told again from there."
    )
    dropped: list[LogDropped]


class LogsAnswer(BaseModel):
    logs: list[str]
    from_: int | None = Field(
        alias="from", description="Number of the first line; null for a tail."
    )
    numbers: list[int] | None = Field(description="Of each line, with `grep`.")
    next: int | None = Field(description="`from` that continues here; null for a tail.")
    size: int
    attempt: int | None
    ended: bool
    complete: bool = Field(description="False when a limit cut the answer short.")
    gaps: list[LogGap]
    outline: LogOutline | None = Field(
        None, description="The log as a whole, when it was asked for."
    )
