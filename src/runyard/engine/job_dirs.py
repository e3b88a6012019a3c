"""Where a job's output and its checkpoints are."""

from __future__ import annotations

import os

from runyard.domain.job import Job

WORKSPACE = "/workspace"  # as containers see the folder of their job
CHECKPOINTS = "checkpoints"  # in the output of a job that names no other place


def own_dir(job: Job, data_dir: str) -> str:
    return own_dir_of(job.ref, data_dir)


def own_dir_of(job_ref: str, data_dir: str | os.PathLike[str]) -> str:
    return os.path.join(data_dir, "outputs", job_ref)


def output_dir(job: Job, data_dir: str) -> str:
    """A relative path means what it would mean to the program itself."""
    own = own_dir(job, data_dir)
    if job.spec.image is not None:
        return _outside(job.spec.output_path or own, own)
    return os.path.join(job.spec.working_dir or own, job.spec.output_path or own)


def outside(job: Job, path: str, data_dir: str) -> str:
    """Where on this machine is what the job calls `path`."""
    return path if job.spec.image is None else _outside(path, own_dir(job, data_dir))


def checkpoint_dir(job: Job, data_dir: str) -> str:
    output = output_dir(job, data_dir)
    spec = job.spec.checkpoint
    if job.spec.image is not None:
        place = (spec.dir if spec else None) or f"{output}/{CHECKPOINTS}"
        # Its workspace is its own folder, wherever its output goes.
        inside = place == WORKSPACE or place.startswith(f"{WORKSPACE}/")
        return _outside(place, own_dir(job, data_dir) if inside else output)
    if spec is None or spec.dir is None:
        return os.path.join(output, CHECKPOINTS)
    return os.path.normpath(os.path.join(job.spec.working_dir or output, spec.dir))


def _outside(path: str, folder: str) -> str:
    """Where on this machine a path of a container is: its workspace is a folder here, and every
    other place of a job is at the same path inside."""
    if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
        path = os.path.relpath(path, WORKSPACE)
    return os.path.normpath(os.path.join(folder, path))
