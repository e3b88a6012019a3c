"""Checkpoints, datasets and what attempts used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import bindparam, delete, insert, literal_column, select, update

from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.datasets import Dataset, NewDataset
from runyard.domain.peaks import EarlierRun, Peak
from runyard.domain.reasons import Reason
from runyard.stores import json_text
from runyard.stores.prepared import Statement
from runyard.stores.repair_tables import attempt_peaks, checkpoints, datasets
from runyard.stores.session import Session
from runyard.stores.tables import attempts, training_jobs

_saved = checkpoints.c
_ONE = (_saved.job_id == bindparam("the_job"), _saved.path == bindparam("the_path"))
_WRITTEN = [c.key for c in _saved if c.key != "id"]
_CHECKPOINTS = Statement(
    select(checkpoints)
    .where(_saved.job_id == bindparam("the_job"))
    .order_by(_saved.saved_at, _saved.id)
)
_UPDATE_CHECKPOINT = Statement(update(checkpoints).where(*_ONE), _WRITTEN)
_INSERT_CHECKPOINT = Statement(insert(checkpoints).inline(), _WRITTEN)
_DELETE_CHECKPOINT = Statement(delete(checkpoints).where(_saved.id == bindparam("the_id")))

_sets = datasets.c
_DATASETS = Statement(select(datasets).order_by(_sets.name))
_DATASET_BY_ID = Statement(select(datasets).where(_sets.id == bindparam("the_id")))
_DATASET_BY_NAME = Statement(select(datasets).where(_sets.name == bindparam("the_name")))
_INSERT_DATASET = Statement(
    insert(datasets).inline(), [c.key for c in _sets if c.key != "id"], gives=_sets.id
)
_DELETE_DATASET = Statement(delete(datasets).where(_sets.id == bindparam("the_id")))

_peaks = attempt_peaks.c
_MEASURED = [c.key for c in _peaks if c.key != "attempt_id"]
_OF_ATTEMPT = _peaks.attempt_id == bindparam("the_attempt")
_PEAK = Statement(select(attempt_peaks).where(_OF_ATTEMPT))
_UPDATE_PEAK = Statement(update(attempt_peaks).where(_OF_ATTEMPT), _MEASURED)
_INSERT_PEAK = Statement(insert(attempt_peaks).inline(), [c.key for c in _peaks])
_EARLIER = Statement(
    select(
        *_peaks,
        training_jobs.c.uuid,
        training_jobs.c.owner,
        training_jobs.c.name,
        training_jobs.c.command,
        training_jobs.c.spec,
    )
    .select_from(
        attempt_peaks.join(attempts, attempts.c.attempt_id == _peaks.attempt_id).join(
            training_jobs, training_jobs.c.id == attempts.c.job_id
        )
    )
    .where(attempts.c.end == literal_column("'completed'"))
    .order_by(attempts.c.ended_at.desc(), attempts.c.job_id.desc())
    .limit(bindparam("many"))
)


class RepairReads(Session):
    def checkpoints(self, job_id: int) -> list[CheckpointRecord]:
        return [_checkpoint_from(row) for row in self._rows(_CHECKPOINTS, the_job=job_id)]

    def datasets(self) -> list[Dataset]:
        return [Dataset(**row._asdict()) for row in self._rows(_DATASETS)]

    def dataset(self, ref: int | str) -> Dataset | None:
        if isinstance(ref, int):
            row = self._row(_DATASET_BY_ID, the_id=ref)
        else:
            row = self._row(_DATASET_BY_NAME, the_name=ref)
        return None if row is None else Dataset(**row._asdict())

    def peak(self, attempt_id: str) -> Peak | None:
        row = self._row(_PEAK, the_attempt=attempt_id)
        return None if row is None else Peak(**row._asdict())

    def earlier_runs(self, limit: int) -> list[EarlierRun]:
        return [_run_from(row) for row in self._rows(_EARLIER, many=limit)]


class RepairWrites(RepairReads):
    def put_checkpoints(self, found: Sequence[CheckpointRecord]) -> None:
        for one in found:
            columns = _checkpoint_columns(one)
            this = {"the_job": one.job_id, "the_path": one.path}
            if not self._run(_UPDATE_CHECKPOINT, **this, **columns):
                self._run(_INSERT_CHECKPOINT, **columns)

    def delete_checkpoint(self, checkpoint_id: int) -> bool:
        return self._run(_DELETE_CHECKPOINT, the_id=checkpoint_id) > 0

    def insert_dataset(self, new: NewDataset, by: str, at: float) -> Dataset:
        columns = {**asdict(new), "created_by": by, "created_at": at}
        return Dataset(id=self._insert(_INSERT_DATASET, **columns), **columns)

    def delete_dataset(self, dataset_id: int) -> bool:
        return self._run(_DELETE_DATASET, the_id=dataset_id) > 0

    def put_peak(self, peak: Peak) -> None:
        measured = {name: getattr(peak, name) for name in _MEASURED}
        if not self._run(_UPDATE_PEAK, the_attempt=peak.attempt_id, **measured):
            self._run(_INSERT_PEAK, attempt_id=peak.attempt_id, **measured)


def _checkpoint_columns(one: CheckpointRecord) -> dict[str, Any]:
    why = {"code": one.why.code, "params": dict(one.why.params)} if one.why else None
    return {
        "job_id": one.job_id,
        "attempt": one.attempt,
        "path": one.path,
        "family": one.family,
        "step": one.step,
        "size_bytes": one.size_bytes,
        "saved_at": one.saved_at,
        "verdict": one.verdict.value,
        "why": why,
        "metrics": dict(one.metrics),
        "reported": int(one.reported),
        "checked_at": one.checked_at,
    }


def _checkpoint_from(row: Any) -> CheckpointRecord:
    return CheckpointRecord(
        id=row.id,
        job_id=row.job_id,
        attempt=row.attempt,
        path=row.path,
        family=row.family,
        step=row.step,
        size_bytes=row.size_bytes,
        saved_at=row.saved_at,
        verdict=CheckpointVerdict(row.verdict),
        why=Reason(row.why["code"], row.why["params"]) if row.why else None,
        metrics=row.metrics,
        reported=bool(row.reported),
        checked_at=row.checked_at,
    )


def _run_from(row: Any) -> EarlierRun:
    argv = row.spec.get("argv")
    return EarlierRun(
        job_ref=row.uuid,
        owner=row.owner,
        name=row.name,
        command=tuple(json_text.decode(row.command)) if argv else row.command,
        peak=Peak(row.attempt_id, row.memory_mb, row.gpu_memory_mb, row.cpu_percent, row.seconds),
    )
