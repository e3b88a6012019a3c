"""Jobs and attempts as answers: plain objects, built fast, with secrets masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runyard.api import metric_answers
from runyard.api.json_body import iso
from runyard.domain import job_services, notifications, secrets
from runyard.domain.events import StoredEvent
from runyard.domain.job import Attempt, JobSpec, Service
from runyard.domain.reasons import Reason
from runyard.domain.resources import GpuGrant, Request
from runyard.engine.read import rank_states
from runyard.engine.read.views import JobView, QueueStatus, Wait
from runyard.wire.jobs import KEPT_FIELDS

BASE = "/api/v1/training"


def job(view: JobView) -> dict[str, Any]:
    """Everything a person can know of a job in one object."""
    it, attempt = view.job, view.attempt
    return {
        "job_id": it.ref,
        "id": it.id,
        "name": it.spec.name,
        "status": it.status.value,
        "stage": it.stage.value if it.stage else None,
        "progress": it.progress,
        "reason": reason(view.reason),
        "wait": wait(view.wait),
        "eta": metric_answers.eta(view.watched.eta),
        "health": metric_answers.health(view.watched.health),
        "metrics": metric_answers.latest(view.watched.metrics),
        "main_metric": metric_answers.main_metric(view.main_metric),
        "efficiency": metric_answers.efficiency(view.watched.efficiency),
        "preflight": view.preflight,
        "diagnosis": dict(attempt.diagnosis) if attempt and attempt.diagnosis else None,
        "attempt": _attempt(attempt, it.ref, view) if attempt else None,
        "submitted_at": iso(it.submitted_at),
        "queued_at": iso(it.queued_at),
        "scheduled_at": iso(it.scheduled_at),
        "started_at": iso(it.started_at),
        "completed_at": iso(it.completed_at),
        "owner": it.owner,
        "priority": it.priority.value,
        "hold": it.hold,
        "retry_count": it.retry_count,
        "charged": it.charged,
        "attempt_number": it.attempt_number,
        "attempt_limit": it.spec.max_retries + 1,
        "depends_on": [{"job": ref, "on": on} for ref, on in view.depends_on],
        "receipt_url": f"{BASE}/jobs/{it.ref}/receipt" if attempt and attempt.receipt else None,
        **_spec(it.spec),
        **request(it.spec.request),
    }


def _spec(spec: JobSpec) -> dict[str, Any]:
    return {
        "description": spec.description,
        "job_type": spec.job_type.value,
        "command": spec.command,
        "working_dir": spec.working_dir,
        "env_vars": secrets.mask(spec.env_vars),
        "image": spec.image,
        "executor": spec.executor,
        "ports": list(spec.port_names) or job_services.own_port_count(spec),
        "max_retries": spec.max_retries,
        "retry_delays": spec.retry_delays,
        "labels": spec.labels,
        "customer_id": spec.customer_id,
        "workspace_id": spec.workspace_id,
        "dataset_ids": spec.dataset_ids,
        "output_path": spec.output_path,
        "params": spec.params,
        "timeout_s": spec.timeout_s,
        "grace_s": spec.grace_s,
        "array": _array(spec),
        "services": [
            *(_service(service) for service in spec.services),
            *({"name": name, "url": url} for name, url in spec.service_urls.items()),
        ],
        "lease_s": spec.lease.length_s if spec.lease else None,
        "on_lease_lost": spec.lease.on_lost if spec.lease else None,
        "prefetch": [secrets.hide_in_urls(uri) for uri in spec.prefetch],
        "tty": spec.tty,
        "isolation": spec.isolation,
        "notify": [notifications.shown_target(target) for target in spec.notify] or None,
        "checkpoint": None if spec.checkpoint is None else asdict(spec.checkpoint),
        "distributed": None if spec.distributed is None else asdict(spec.distributed),
        **{name: spec.extra.get(name) for name in KEPT_FIELDS},
    }


def _array(spec: JobSpec) -> dict[str, Any] | None:
    place = spec.array
    if place is None:
        return None
    return {"array_id": place.array_id, "index": place.index, "limit": place.limit}


def _service(service: Service) -> dict[str, Any]:
    return {
        "name": service.name,
        "command": service.command,
        "port": service.port or "auto",
        "health": service.health,
        "ready_timeout_s": service.ready_timeout_s,
        "restart": service.restart,
        "env_vars": secrets.mask(service.env_vars),
    }


def request(request: Request) -> dict[str, Any]:
    return {
        "cpu_cores": _number(request.cpu_milli / 1000),
        "memory_gb": _number(round(request.memory_mb / 1024, 3)),
        "gpu_count": _number(request.gpu_milli / 1000),
        "gpu_type": request.gpu_type,
    }


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value


def reason(found: Reason | None) -> dict[str, Any] | None:
    return {"code": found.code, "params": found.params} if found else None


def wait(found: Wait | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "code": found.reason.code,
        "params": found.reason.params,
        "position": found.position,
        "est_start_low": iso(found.est_start_low),
        "est_start_high": iso(found.est_start_high),
        "blockers": found.blockers,
    }


def _attempt(found: Attempt, job_ref: str, view: JobView) -> dict[str, Any]:
    return attempt(found, job_ref, view.services, ranks=view.ranks)


def attempt(
    found: Attempt,
    job_ref: str,
    services: Sequence[Mapping[str, Any]] = (),
    changes: Sequence[Mapping[str, Any]] = (),
    ranks: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    return {
        "attempt_id": found.attempt_id,
        "job_id": job_ref,
        "number": found.number,
        "status": found.status.value,
        "end": found.end.value if found.end else None,
        "stage": found.stage.value,
        "exit_code": found.exit_code,
        "signal": found.signal,
        "cause": found.cause,
        "created_at": iso(found.created_at),
        "started_at": iso(found.started_at),
        "ended_at": iso(found.ended_at),
        "node": found.node_id,
        "executor": found.executor,
        "gpus": _gpus(found.gpus),
        "ports": found.ports,
        "slices": [
            {
                "index": part.index,
                "node": part.node_id,
                "name": part.node,
                "address": part.address,
                "gpus": _gpus(part.gpus),
                "ports": part.ports,
            }
            for part in found.slices
        ],
        "services": list(services),
        "ranks": [_rank(one) for one in ranks or rank_states.of_ended(found)],
        "params": found.params,
        "changes": list(changes),
        "plan": found.plan,
        "diagnosis": found.diagnosis,
    }


def _rank(one: Mapping[str, Any]) -> dict[str, Any]:
    names = ("rank", "state", "pid", "exit_code", "signal")
    return {**{name: one[name] for name in names}, "ended_at": iso(one["ended_at"])}


def _gpus(grants: Sequence[GpuGrant]) -> list[dict[str, Any]]:
    return [
        {"index": gpu.index, "uuid": gpu.uuid, "share": _number(gpu.milli / 1000)}
        for gpu in grants
    ]


def queue(found: QueueStatus) -> dict[str, Any]:
    return {
        "dispatching": found.dispatching,
        "max_concurrent": found.max_concurrent,
        "counts": found.counts,
        "waiting": [job(view) for view in found.waiting],
        "running": [job(view) for view in found.running],
        "gates": list(found.gates),
    }


def event(found: StoredEvent) -> dict[str, Any]:
    it = found.event
    return {
        "id": found.id,
        "code": it.code,
        "at": iso(it.at),
        "actor": it.actor,
        "job_id": found.job_ref,
        "attempt_id": it.attempt_id,
        "params": it.params,
    }
