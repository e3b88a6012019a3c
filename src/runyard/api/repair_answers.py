"""Checkpoints, datasets and files as answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from runyard.api import metric_answers
from runyard.api.json_body import iso
from runyard.domain import datasets
from runyard.domain.checkpoints.record import CheckpointRecord
from runyard.domain.datasets import Dataset
from runyard.domain.peaks import Suggestion
from runyard.engine.read.output_files import OutputFiles
from runyard.prefetch import addresses


def checkpoint(found: CheckpointRecord) -> dict[str, Any]:
    why = found.why
    return {
        "id": found.id,
        "path": found.path,
        "attempt": found.attempt,
        "family": found.family,
        "step": found.step,
        "size_bytes": found.size_bytes,
        "saved_at": iso(found.saved_at),
        "verdict": found.verdict.value,
        "why": None if why is None else {"code": why.code, "params": why.params},
        "metrics": metric_answers.latest(found.metrics),
        "reported": found.reported,
        "checked_at": iso(found.checked_at),
    }


def files(found: OutputFiles) -> dict[str, Any]:
    listed = [
        {"path": one.path, "size_bytes": one.size, "changed_at": iso(one.changed_at)}
        for one in found.files
    ]
    return {"dir": found.dir, "files": listed, "truncated": found.truncated}


def suggestion(found: Suggestion | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


def dataset(found: Dataset) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "uri": addresses.masked(found.uri),
        "hash": found.hash,
        "variable": datasets.variable(found.name),
        "created_by": found.created_by,
        "created_at": iso(found.created_at),
    }
