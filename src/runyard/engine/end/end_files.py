"""What the files of an attempt say when it has ended, looked at once: most short commands leave
nothing, and then nobody needs to read their logs or to look for checkpoints."""

from __future__ import annotations

import os

from runyard.domain import job_environment
from runyard.domain.job import Attempt, JobSpec
from runyard.engine import job_dirs
from runyard.engine.parts import Parts


def metrics_path(parts: Parts, attempt_id: str) -> str:
    return f"{parts.settings.data_dir}/attempts/{attempt_id}/{job_environment.METRICS_FILE}"


def log_paths(parts: Parts, attempt_id: str) -> set[str]:
    """Whichever executor it ran on; those of one machine keep theirs in the same place."""
    return {executor.log_path(attempt_id) for executor in parts.executors.values()}


def are_empty(parts: Parts, attempt_id: str) -> bool:
    """Whether it wrote neither a line nor a metric, and the folder of its job holds no file."""
    paths = (metrics_path(parts, attempt_id), *log_paths(parts, attempt_id))
    if any(_is_written(path) for path in paths):
        return False
    return _is_bare(job_dirs.own_dir_of(attempt_id.rpartition(".")[0], parts.settings.data_dir))


def tell_all(attempt: Attempt, spec: JobSpec) -> bool:
    """Whether files that are empty mean that nothing was written: an only attempt, on this
    machine, whose job has no other place to write to that we would look at."""
    return (
        attempt.number == 1
        and not attempt.slices
        and spec.distributed is None
        and spec.output_path is None
        and (spec.checkpoint is None or spec.checkpoint.dir is None)
    )


def _is_written(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True  # nobody knows


def _is_bare(folder: str) -> bool:
    try:
        names = os.listdir(folder)
        return not names or (
            names == [job_dirs.CHECKPOINTS] and not os.listdir(f"{folder}/{names[0]}")
        )
    except FileNotFoundError:
        return True
    except OSError:
        return False
