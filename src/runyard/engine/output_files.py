"""What a job has left in its output directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from runyard.domain.job import Job
from runyard.engine import job_dirs

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
    """Links are neither told nor followed; a directory that is not there is empty."""
    folder = job_dirs.output_dir(job, data_dir)
    found: list[OutputFile] = []
    for file in _below(folder, "", 0):
        if len(found) == MOST_FILES:
            return OutputFiles(folder, tuple(found), truncated=True)
        found.append(file)
    return OutputFiles(folder, tuple(found), truncated=False)


def _below(folder: str, path: str, depth: int) -> Iterator[OutputFile]:
    try:
        with os.scandir(os.path.join(folder, path)) as entries:
            known = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in known:
        below = f"{path}/{entry.name}" if path else entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if depth < MOST_DEEP:
                    yield from _below(folder, below, depth + 1)
            elif entry.is_file(follow_symlinks=False):
                told = entry.stat(follow_symlinks=False)
                yield OutputFile(below, told.st_size, told.st_mtime)
        except OSError:
            continue  # gone meanwhile
