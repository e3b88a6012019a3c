"""What differs in the launch of a job with an image: its container, folders and environment."""

from __future__ import annotations

from collections.abc import Mapping

from runyard.domain import job_environment
from runyard.domain.job import Attempt, Job, JobSpec
from runyard.engine import job_dirs
from runyard.executors.base import ContainerLaunch
from runyard.settings import Settings

_IMAGE_BASE = {"LANG": "C.UTF-8"}


def base_of(spec: JobSpec, own: Mapping[str, str]) -> Mapping[str, str]:
    """Home, user and path of a container are the image's, not this machine's."""
    return own if spec.image is None else _IMAGE_BASE


def working_dir(spec: JobSpec, output_dir: str) -> str:
    return spec.working_dir or (output_dir if spec.image is None else job_dirs.WORKSPACE)


def folders(job: Job, settings: Settings) -> tuple[str, ...]:
    """Those that are made for the job; an engine would make them root's."""
    data_dir = str(settings.data_dir)
    own = () if job.spec.image is None else (job_dirs.own_dir(job, data_dir),)
    return (*own, job_dirs.output_dir(job, data_dir), job_dirs.checkpoint_dir(job, data_dir))


def container(
    job: Job, attempt: Attempt, facts: job_environment.Facts, settings: Settings
) -> ContainerLaunch | None:
    spec, request = facts.spec, attempt.request
    if spec.image is None:
        return None
    return ContainerLaunch(
        image=spec.image,
        cpu_milli=request.cpu_milli,
        # As outside of containers: a fair share that nobody asked for is a guess.
        memory_mb=request.memory_mb or None if spec.memory_asked else None,
        workspace=job_dirs.own_dir(job, str(settings.data_dir)),
        writable=(facts.output_dir, facts.checkpoint_dir),
        read_only=tuple(filter(None, (facts.resume_from, facts.prefetch_dir))),
        ports=attempt.ports,
    )
