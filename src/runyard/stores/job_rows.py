"""Rows of the table of jobs to domain values and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from runyard.domain.checkpoints.spec import CheckpointSpec
from runyard.domain.datasets import Dataset
from runyard.domain.distributed import Distributed
from runyard.domain.job import (
    ArrayPlace,
    Job,
    JobSpec,
    JobType,
    LeaseTerms,
    NewJob,
    NotifyTarget,
    Priority,
    Service,
)
from runyard.domain.resources import Request
from runyard.domain.states import JobStatus, Stage
from runyard.stores import json_text
from runyard.stores.column_values import reason_from


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
