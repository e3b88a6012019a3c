"""The shapes of series of metrics."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SeriesAnswer(BaseModel):
    steps: list[int | None]
    times: list[float] = Field(description="Seconds since 1970.")
    values: list[float | str] = Field(description="NaN and infinities as words.")
    sampled: bool = Field(description="There are more points than these.")


class MetricsAnswer(BaseModel):
    series: dict[str, SeriesAnswer]
