"""Why a job with an image does not run yet: its container is being made, or its image pulled."""

from __future__ import annotations

import json
from pathlib import Path

from runyard.domain import reasons
from runyard.domain.job import Job
from runyard.domain.reasons import Reason
from runyard.supervisor import protocol

_SHOWN = ("bytes_done", "bytes_total", "layers_done", "layers_total")


def starting(job: Job) -> Reason | None:
    """What its main process waits for, once it is handed over."""
    names = [service.name for service in job.spec.services]
    if names:
        return Reason(reasons.STARTING_SERVICES, {"services": names})
    if job.spec.image is not None:
        return Reason(reasons.STARTING_CONTAINER, {"image": job.spec.image})
    return None


def as_seen(reason: Reason, data_dir: Path, attempt_id: str) -> Reason:
    """With how far the pull is, if there is one."""
    path = data_dir / protocol.ATTEMPTS / attempt_id / protocol.PULL
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return reason
    if told.get("complete") or not isinstance(told, dict):
        return reason
    known = {name: told[name] for name in _SHOWN if name in told}
    return Reason(reason.code, {**reason.params, **known})
