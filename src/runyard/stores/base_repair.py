"""The part of the store port that keeps what repair needs: checkpoints, datasets, peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runyard.domain.checkpoints.record import CheckpointRecord
from runyard.domain.datasets import Dataset, NewDataset
from runyard.domain.peaks import EarlierRun, Peak


class RepairReader(Protocol):
    def checkpoints(self, job_id: int) -> list[CheckpointRecord]:
        """In the order they were saved, first one first."""
        ...

    def datasets(self) -> list[Dataset]:
        """By name."""
        ...

    def dataset(self, ref: int | str) -> Dataset | None:
        """By its number or its name."""
        ...

    def peak(self, attempt_id: str) -> Peak | None: ...
    def earlier_runs(self, limit: int) -> list[EarlierRun]:
        """Of attempts that completed, newest first."""
        ...


class RepairTransaction(RepairReader, Protocol):
    def put_checkpoints(self, found: Sequence[CheckpointRecord]) -> None:
        """Insert, or replace the one of the same job and path; ids are the store's."""
        ...

    def delete_checkpoint(self, checkpoint_id: int) -> bool: ...
    def insert_dataset(self, new: NewDataset, by: str, at: float) -> Dataset:
        """Its name must be free: look in the same transaction."""
        ...

    def delete_dataset(self, dataset_id: int) -> bool: ...
    def put_peak(self, peak: Peak) -> None:
        """Insert or replace."""
        ...
