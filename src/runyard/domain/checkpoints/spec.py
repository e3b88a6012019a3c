"""What a job says about its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CheckpointSpec:
    """`dir` is relative to the working directory; None is the job's own checkpoint directory.
    `pattern` finds what has an unusual name; `every` is passed on to the program; `keep` lets
    older good ones be removed."""

    dir: str | None = None
    pattern: str | None = None
    every: int | None = None
    keep: int | None = None
    resume: Literal["auto", "never"] = "auto"
