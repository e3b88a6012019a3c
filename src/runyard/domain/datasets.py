"""Datasets that jobs name by a number, and what a job finds them by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NOT_IN_NAMES = re.compile(r"[^A-Z0-9]+")


@dataclass(frozen=True, slots=True)
class NewDataset:
    name: str
    uri: str
    hash: str | None = None  # sha256:...


@dataclass(frozen=True, slots=True)
class Dataset:
    id: int
    name: str
    uri: str
    hash: str | None
    created_by: str
    created_at: float


def variable(name: str) -> str:
    """The variable that tells a job where the dataset of that name is."""
    return "RUNYARD_DATASET_" + _NOT_IN_NAMES.sub("_", name.upper()).strip("_")


def file_name(dataset: Dataset) -> str:
    """Its name among all that was fetched for a job."""
    return f"dataset-{dataset.name}"


def same_variable(name: str, others: Iterable[str]) -> str | None:
    """Another dataset that could not be told from this one inside a job."""
    wanted = variable(name)
    return next((other for other in others if variable(other) == wanted), None)
