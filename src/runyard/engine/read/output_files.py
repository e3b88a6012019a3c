"""What a job has left in its output directory."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain.job import Job
from runyard.engine import folder_walk, job_dirs

MOST_FILES = 10_000
MOST_DEEP = 8


@dataclass(frozen=True, slots=True)
class OutputFile:
    path: str  # below the directory
    size: int
    changed_at: float


@dataclass(frozen=True, slots=True)
class OutputFiles:
    dir: str
    files: tuple[OutputFile, ...]  # by path
    truncated: bool  # there are more


def of_job(job: Job, data_dir: str) -> OutputFiles:
    folder = job_dirs.output_dir(job, data_dir)
    found: list[OutputFile] = []
    for path, told in folder_walk.files_below(folder, MOST_DEEP):
        if len(found) == MOST_FILES:
            return OutputFiles(folder, tuple(found), truncated=True)
        found.append(OutputFile(path, told.st_size, told.st_mtime))
    return OutputFiles(folder, tuple(found), truncated=False)
