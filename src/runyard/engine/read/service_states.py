"""The services of an attempt as they are now, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.domain import job_services
from runyard.domain.job import Attempt, Job
from runyard.domain.states import AttemptStatus
from runyard.engine.parts import Parts


def of_attempt(parts: Parts, job: Job, attempt: Attempt) -> list[dict[str, Any]]:
    """Name, state (starting, ready, restarting, ended; None where only another server knows it),
    port, url, restarts, and how it ended."""
    if not job.spec.services:
        return []
    ports = job_services.ports(job.spec, attempt.ports)
    known = {one["name"]: one for one in _known(parts, attempt)}
    ended = attempt.status is AttemptStatus.ENDED
    here = attempt.node_id == parts.node_id
    return [
        {
            "name": service.name,
            "state": "ended" if ended else "starting" if here else None,
            "healthy": None,
            "port": ports[service.name],
            "url": job_services.url(ports[service.name]),
            "restarts": 0,
            "pid": None,
            "exit_code": None,
            "signal": None,
            **known.get(service.name, {}),
        }
        for service in job.spec.services
    ]


def _known(parts: Parts, attempt: Attempt) -> Sequence[dict[str, Any]]:
    if attempt.status is AttemptStatus.ENDED:
        return list((attempt.receipt or {}).get("services", ()))
    if attempt.node_id != parts.node_id:
        return []
    return parts.executors[attempt.executor].services(attempt.attempt_id)
