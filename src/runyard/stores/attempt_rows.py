"""Rows of the table of attempts to domain values and back."""

from __future__ import annotations

from typing import Any

from runyard.domain import slices
from runyard.domain.job import Attempt
from runyard.domain.resources import GpuGrant
from runyard.domain.states import AttemptEnd, AttemptStatus, Stage
from runyard.stores.column_values import request_columns, request_from


def attempt_columns(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt_id": attempt.attempt_id,
        "job_id": attempt.job_id,
        "number": attempt.number,
        "status": attempt.status.value,
        "stage": attempt.stage.value,
        "node_id": attempt.node_id,
        "machine_id": attempt.machine_id,
        "boot_id": attempt.boot_id,
        "executor": attempt.executor,
        **request_columns(attempt.request),
        "tag": attempt.tag,
        "gpus": gpu_list(attempt.gpus),
        "ports": attempt.ports,
        "params": attempt.params,
        "end": attempt.end.value if attempt.end else None,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "cause": attempt.cause,
        "stop_seq": attempt.stop_seq,
        "plan": attempt.plan,
        "diagnosis": attempt.diagnosis,
        "receipt": attempt.receipt,
        "created_at": attempt.created_at,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "slices": slices.as_list(attempt.slices) if attempt.slices else None,
    }


def gpu_list(gpus: tuple[GpuGrant, ...]) -> list[list[Any]]:
    return [[gpu.uuid, gpu.index, gpu.milli] for gpu in gpus]


def gpus_from(stored: list[list[Any]]) -> tuple[GpuGrant, ...]:
    return tuple(GpuGrant(uuid, index, milli) for uuid, index, milli in stored)


def attempt_from(row: Any) -> Attempt:
    return Attempt(
        attempt_id=row.attempt_id,
        job_id=row.job_id,
        number=row.number,
        status=AttemptStatus(row.status),
        node_id=row.node_id,
        machine_id=row.machine_id,
        boot_id=row.boot_id,
        executor=row.executor,
        request=request_from(row),
        tag=row.tag,
        created_at=row.created_at,
        stage=Stage(row.stage),
        gpus=gpus_from(row.gpus),
        ports=tuple(row.ports),
        params=row.params,
        end=None if row.end is None else AttemptEnd(row.end),
        exit_code=row.exit_code,
        signal=row.signal,
        cause=row.cause,
        started_at=row.started_at,
        ended_at=row.ended_at,
        stop_seq=row.stop_seq,
        plan=row.plan,
        diagnosis=row.diagnosis,
        receipt=row.receipt,
        slices=slices.from_list(row.slices),
    )
