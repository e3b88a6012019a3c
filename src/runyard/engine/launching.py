"""Placed attempts become running supervisors."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass

from runyard.domain import command, job_environment
from runyard.domain.job import Attempt, Job
from runyard.domain.job_environment import AttemptFacts, AttemptPlace
from runyard.engine import story
from runyard.engine.parts import Parts
from runyard.executors.base import Launch


@dataclass(frozen=True, slots=True)
class Placed:
    """A committed placement that this node must start."""

    job: Job
    attempt: Attempt


class Launcher:
    def __init__(self, parts: Parts, before: Callable[[Attempt], None]) -> None:
        self._parts = parts
        self._before = before
        self._base_env = _base_environment()

    def launch(self, placed: Placed) -> None:
        """Hand the attempt to its executor. An error leaves it to reconcile, which sees that
        nothing was handed over and records that it never started."""
        log = story.of(placed.job.ref, placed.attempt.attempt_id)
        self._before(placed.attempt)
        try:
            self._parts.executors[placed.attempt.executor].start(self._plan(placed))
        except OSError as error:
            log.error("could not be handed to its executor: {}", error)
            return
        log.info("handed to the {} executor: {}", placed.attempt.executor, placed.job.spec.name)

    def _plan(self, placed: Placed) -> Launch:
        job, attempt, settings = placed.job, placed.attempt, self._parts.settings
        spec = job.spec
        run_dir = settings.data_dir / "attempts" / attempt.attempt_id
        output_dir = spec.output_path or str(settings.data_dir / "outputs" / job.ref)
        place = AttemptPlace(
            run_dir=str(run_dir),
            output_dir=output_dir,
            checkpoint_dir=os.path.join(output_dir, "checkpoints"),
            metrics_file=str(run_dir / "metrics.jsonl"),
            stop_file=str(run_dir / "stop-requested"),
            temp_dir=str(run_dir / "tmp"),
        )
        argv = command.build_argv(
            spec.command,
            attempt.params,
            resume_from=None,
            output_dir=output_dir,
            checkpoint_dir=place.checkpoint_dir,
        )
        return Launch(
            attempt_id=attempt.attempt_id,
            job_ref=job.ref,
            tag=attempt.tag,
            argv=tuple(argv),
            env=self._environment(placed, place),
            cwd=spec.working_dir or output_dir,
            make_dirs=(output_dir, place.checkpoint_dir),
            grace_s=spec.grace_s,
            leftover_grace_s=settings.leftover_grace_s,
            timeout_s=spec.timeout_s,
            log_cap_bytes=settings.log_cap_mb * 1024 * 1024,
            gpu_uuids=tuple(grant.uuid for grant in attempt.gpus),
            gpu_shared=attempt.request.shares_gpu,
            image=spec.image,
        )

    def _environment(self, placed: Placed, place: AttemptPlace) -> dict[str, str]:
        job, attempt = placed.job, placed.attempt
        array = job.spec.array
        facts = AttemptFacts(
            job_ref=job.ref,
            attempt_id=attempt.attempt_id,
            number=attempt.number,
            place=place,
            cpu_milli=attempt.request.cpu_milli,
            params=attempt.params,
            gpus=attempt.gpus,
            ports=attempt.ports,
            port_names=job.spec.port_names,
            array_id=array.array_id if array else None,
            array_index=array.index if array else None,
        )
        return job_environment.build_environment(
            facts, base=self._base_env, from_cli=job.spec.base_env, env_vars=job.spec.env_vars
        )


def _base_environment() -> dict[str, str]:
    """A clean base: never the server's own environment, which may hold secrets."""
    try:
        entry = pwd.getpwuid(os.getuid())
        home, user = entry.pw_dir, entry.pw_name
    except KeyError:  # a container may run as a user without a name
        home, user = "/", str(os.getuid())
    return {
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }
