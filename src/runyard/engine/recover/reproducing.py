"""The command that reproduces a failure: as the attempt ran it, with all that it was given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from runyard.domain import command, secrets
from runyard.domain.job import Attempt, Job
from runyard.engine.launch import starts
from runyard.engine.launch.starts import Start


def of(
    job: Job,
    attempts: Sequence[Attempt],
    number: int,
    places: command.Places,
    resume_from: str | None,
) -> dict[str, Any]:
    """Of the attempt of this number; `resume_from` is the checkpoint that it was given."""
    start = Start(starts.ran_with(attempts, number), resume_from)
    spec = start.spec(job.spec)
    params = secrets.mask(spec.params)
    argv = command.render(spec.command, params, replace(places, resume_from=resume_from))
    return {
        "attempt": number,
        "command": argv[-1] if isinstance(spec.command, str) else argv,
        "params": params,
        "working_dir": spec.working_dir,
        "env": {**secrets.mask(spec.env_vars), **_own(start, places, params)},
        "batch_scale": start.adjustments.batch_scale,
    }


def _own(start: Start, places: command.Places, params: dict[str, Any]) -> dict[str, str]:
    """Of our own variables those that a program may need to do the same again."""
    own = {
        "RUNYARD_OUTPUT_DIR": places.output_dir,
        "RUNYARD_CHECKPOINT_DIR": places.checkpoint_dir,
    }
    if start.resume_from is not None:
        own["RUNYARD_RESUME_FROM"] = start.resume_from
    if params:
        own["RUNYARD_PARAMS"] = json.dumps(params, ensure_ascii=False)
    if start.adjustments.batch_scale != 1:
        own["RUNYARD_BATCH_SCALE"] = start.batch_scale
    return own
