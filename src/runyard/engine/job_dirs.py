"""Where a job's output and its checkpoints are."""

from __future__ import annotations

import os

from runyard.domain.job import Job


def output_dir(job: Job, data_dir: str) -> str:
    """A relative path means what it would mean to the program itself."""
    own = os.path.join(data_dir, "outputs", job.ref)
    return os.path.join(job.spec.working_dir or own, job.spec.output_path or own)


def checkpoint_dir(job: Job, data_dir: str) -> str:
    output = output_dir(job, data_dir)
    spec = job.spec.checkpoint
    if spec is None or spec.dir is None:
        return os.path.join(output, "checkpoints")
    return os.path.normpath(os.path.join(job.spec.working_dir or output, spec.dir))
