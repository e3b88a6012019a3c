"""What the main process of a job that was handed over waits for."""

from __future__ import annotations

from runyard.domain import reasons
from runyard.domain.job import Job
from runyard.domain.reasons import Reason


def starting(job: Job) -> Reason | None:
    """Its services, or its container; None where it starts at once."""
    names = [service.name for service in job.spec.services]
    if names:
        return Reason(reasons.STARTING_SERVICES, {"services": names})
    if job.spec.image is not None:
        return Reason(reasons.STARTING_CONTAINER, {"image": job.spec.image})
    return None
