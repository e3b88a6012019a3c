"""The part of the store port that keeps metrics of jobs and of machines.

NaN and infinities come back as they were given. A step that is None stays None. Writing the same
sample of the same attempt again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runyard.domain.monitoring.series import Sample


@dataclass(frozen=True, slots=True)
class MetricRange:
    """Which part of a series is wanted; empty fields do not limit it. Both ends belong to it."""

    since: float | None = None
    until: float | None = None
    since_step: int | None = None
    attempt: int | None = None


EVERYTHING = MetricRange()


@dataclass(frozen=True, slots=True)
class Series:
    samples: tuple[Sample, ...]  # in order of step, then time
    sampled: bool  # there are more of them in the store


class MetricReader(Protocol):
    def metric_names(self, job_id: int) -> list[str]: ...
    def metric_series(
        self, job_id: int, name: str, most: int, chosen: MetricRange = EVERYTHING
    ) -> Series:
        """At most `most` samples, however many there are: the lowest, the highest and NaN of each
        stretch stay. Over several attempts it is the run as it stands: steps that a later attempt
        did again are that attempt's."""
        ...

    def metric_tail(self, job_id: int, attempt: int, name: str, most: int) -> list[Sample]:
        """The newest of one attempt, oldest first."""
        ...

    def node_metric_names(self, node_id: str) -> list[str]: ...
    def node_series(
        self, node_id: str, name: str, most: int, chosen: MetricRange = EVERYTHING
    ) -> Series: ...

    def jobs_with_points_before(self, before: float, limit: int = 100) -> list[int]:
        """Jobs that have single points older than this."""
        ...


class MetricTransaction(MetricReader, Protocol):
    def insert_points(self, job_id: int, attempt: int, samples: Sequence[Sample]) -> int:
        """With their rollups. How many were new; 0 when the job is gone."""
        ...

    def insert_node_points(self, node_id: str, samples: Sequence[Sample]) -> None: ...

    # retention
    def prune_points(self, job_id: int, before: float) -> int:
        """Single points of a job go; its rollups stay."""
        ...

    def prune_node_points(self, before: float, limit: int = 50_000) -> int: ...
    def thin_node_points(self, since: float, until: float, width_s: float) -> int:
        """Keep the lowest and the highest of every `width_s` seconds; how many went."""
        ...
