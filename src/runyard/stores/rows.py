"""Rows of the tables to domain values and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from runyard.domain import slices
from runyard.domain.checkpoints.spec import CheckpointSpec
from runyard.domain.datasets import Dataset
from runyard.domain.distributed import Distributed
from runyard.domain.events import Event, StoredEvent
from runyard.domain.job import (
    ArrayPlace,
    Attempt,
    Job,
    JobSpec,
    JobType,
    LeaseTerms,
    NewJob,
    NotifyTarget,
    Priority,
    Service,
)
from runyard.domain.reasons import Reason
from runyard.domain.resources import GpuGrant, Request
from runyard.domain.states import AttemptEnd, AttemptStatus, JobStatus, Stage
from runyard.stores import json_text


def reason_from(code: str | None, params: dict[str, Any] | None) -> Reason | None:
    return None if code is None else Reason(code, params or {})


def request_columns(request: Request) -> dict[str, Any]:
    return {
        "cpu_milli": request.cpu_milli,
        "memory_mb": request.memory_mb,
        "gpu_milli": request.gpu_milli,
        "gpu_type": request.gpu_type,
        "port_count": request.port_count,
    }


def request_from(row: Any) -> Request:
    return Request(row.cpu_milli, row.memory_mb, row.gpu_milli, row.gpu_type, row.port_count)


# Jobs


def _spec_rest(spec: JobSpec) -> dict[str, Any]:
    """The fields without a column; those at their default are left out."""
    rest: dict[str, Any] = {"grace_s": spec.grace_s}
    if not isinstance(spec.command, str):
        rest["argv"] = True
    if spec.executor != "auto":
        rest["executor"] = spec.executor
    if spec.request.port_count:
        rest["port_count"] = spec.request.port_count
    if spec.port_names:
        rest["port_names"] = spec.port_names
    if spec.retry_delays is not None:
        rest["retry_delays"] = spec.retry_delays
    if spec.array is not None:
        rest["array_limit"] = spec.array.limit
    if spec.services:
        rest["services"] = [asdict(service) for service in spec.services]
    if spec.lease is not None:
        rest["lease"] = asdict(spec.lease)
    if spec.prefetch:
        rest["prefetch"] = spec.prefetch
    if spec.datasets:
        rest["datasets"] = [asdict(dataset) for dataset in spec.datasets]
    if spec.preflight is not None:
        rest["preflight"] = spec.preflight
    if spec.pull:
        rest["pull"] = True
    if spec.notify:
        rest["notify"] = [asdict(target) for target in spec.notify]
    if spec.checkpoint is not None:
        rest["checkpoint"] = asdict(spec.checkpoint)
    if spec.distributed is not None:
        rest["distributed"] = asdict(spec.distributed)
    if spec.memory_asked:
        rest["memory_asked"] = True
    if spec.tty:
        rest["tty"] = True
    if spec.isolation != "none":
        rest["isolation"] = spec.isolation
    for name in ("base_env", "params", "labels", "service_urls", "extra"):
        value = getattr(spec, name)
        if value:
            rest[name] = dict(value)
    return rest


def job_columns(new: NewJob, shape_id: int) -> dict[str, Any]:
    spec, request, reason = new.spec, new.spec.request, new.reason
    array = spec.array
    argv = not isinstance(spec.command, str)
    return {
        "uuid": new.ref,
        "customer_id": spec.customer_id,
        "workspace_id": spec.workspace_id,
        "owner": new.owner,
        "name": spec.name,
        "description": spec.description,
        "job_type": spec.job_type.value,
        "cpu_cores": request.cpu_milli / 1000,
        "memory_gb": request.memory_mb / 1024,
        "gpu_count": request.gpu_milli / 1000,
        "gpu_type": request.gpu_type,
        "image": spec.image,
        "command": json_text.encode(spec.command) if argv else spec.command,
        "working_dir": spec.working_dir,
        "env_vars": spec.env_vars,
        "dataset_ids": spec.dataset_ids,
        "output_path": spec.output_path,
        "spec": _spec_rest(spec),
        "timeout_s": spec.timeout_s,
        "array_id": array.array_id if array else None,
        "array_index": array.index if array else None,
        "status": "pending",
        "stage": None,
        "reason_code": reason.code if reason else None,
        "reason_params": reason.params if reason else None,
        "progress": 0.0,
        "retry_count": 0,
        "charged": 0,
        "max_retries": spec.max_retries,
        "attempt_number": 0,
        "priority": new.priority.value,
        "shape_id": shape_id,
        "ready": new.ready,
        "hold": new.hold,
        "not_before": None,
        "queued_at": new.submitted_at,
        "submitted_at": new.submitted_at,
        "scheduled_at": None,
        "started_at": None,
        "completed_at": None,
    }


def spec_from(row: Any) -> JobSpec:
    rest = row.spec
    command = row.command
    array = None
    if row.array_id is not None:
        array = ArrayPlace(row.array_id, row.array_index, rest.get("array_limit", 0))
    delays, lease = rest.get("retry_delays"), rest.get("lease")
    checkpoint, distributed = rest.get("checkpoint"), rest.get("distributed")
    return JobSpec(
        name=row.name,
        command=tuple(json_text.decode(command)) if rest.get("argv") else command,
        job_type=JobType(row.job_type),
        description=row.description,
        working_dir=row.working_dir,
        env_vars=row.env_vars,
        base_env=rest.get("base_env", {}),
        image=row.image,
        executor=rest.get("executor", "auto"),
        request=Request(
            round(row.cpu_cores * 1000),
            round(row.memory_gb * 1024),
            round(row.gpu_count * 1000),
            row.gpu_type,
            rest.get("port_count", 0),
        ),
        port_names=tuple(rest.get("port_names", ())),
        max_retries=row.max_retries,
        retry_delays=None if delays is None else tuple(delays),
        dataset_ids=tuple(row.dataset_ids),
        output_path=row.output_path,
        params=rest.get("params", {}),
        labels=rest.get("labels", {}),
        timeout_s=row.timeout_s,
        grace_s=rest["grace_s"],
        array=array,
        services=tuple(_service_from(kept) for kept in rest.get("services", ())),
        service_urls=rest.get("service_urls", {}),
        lease=None if lease is None else LeaseTerms(**lease),
        prefetch=tuple(rest.get("prefetch", ())),
        datasets=tuple(Dataset(**kept) for kept in rest.get("datasets", ())),
        preflight=rest.get("preflight"),
        pull=rest.get("pull", False),
        notify=tuple(_notify_target_from(kept) for kept in rest.get("notify", ())),
        checkpoint=None if checkpoint is None else CheckpointSpec(**checkpoint),
        distributed=None if distributed is None else Distributed(**distributed),
        memory_asked=rest.get("memory_asked", False),
        tty=rest.get("tty", False),
        isolation=rest.get("isolation", "none"),
        customer_id=row.customer_id,
        workspace_id=row.workspace_id,
        extra=rest.get("extra", {}),
    )


def _service_from(kept: dict[str, Any]) -> Service:
    command = kept["command"]
    return Service(**{**kept, "command": command if isinstance(command, str) else tuple(command)})


def _notify_target_from(kept: dict[str, Any]) -> NotifyTarget:
    return NotifyTarget(**{**kept, "events": tuple(kept["events"])})


def job_from(row: Any) -> Job:
    return Job(
        id=row.id,
        ref=row.uuid,
        spec=spec_from(row),
        status=JobStatus(row.status),
        priority=Priority(row.priority),
        owner=row.owner,
        submitted_at=row.submitted_at,
        queued_at=row.queued_at,
        shape_id=row.shape_id,
        stage=None if row.stage is None else Stage(row.stage),
        reason=reason_from(row.reason_code, row.reason_params),
        progress=row.progress,
        retry_count=row.retry_count,
        charged=row.charged,
        attempt_number=row.attempt_number,
        hold=row.hold,
        ready=row.ready,
        not_before=row.not_before,
        scheduled_at=row.scheduled_at,
        started_at=row.started_at,
        completed_at=row.completed_at,
    )


# Attempts


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


# Events


def event_columns(told: StoredEvent) -> dict[str, Any]:
    event = told.event
    return {
        "job_id": told.job_id,
        "code": event.code,
        "at": event.at,
        "actor": event.actor,
        "attempt_id": event.attempt_id,
        "params": event.params,
    }


def stored_event_from(row: Any) -> StoredEvent:
    event = Event(row.code, row.at, row.actor, row.attempt_id, row.params)
    return StoredEvent(row.id, row.job_id, row.job_ref, event)
