"""What the preflight program is told of a job, and what it found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runyard.domain import command, distributed, job_environment, job_services
from runyard.domain.job import Job, JobSpec
from runyard.domain.preparation import GRACE_S, Preparation
from runyard.engine.launch.launch_plan import base_environment, places_of
from runyard.executors.base import Launch
from runyard.preflight import plan
from runyard.settings import Settings

PASSED = "passed"


class PreflightPlan:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def launch(self, job: Job, begun: Preparation) -> Launch:
        """Writes the plan; the launch runs the program on it."""
        name = begun.preparation_id
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        plan.write(self._wanted(job, begun), self._file(name, "plan"))
        return Launch(
            attempt_id=name,
            job_ref=job.ref,
            tag=begun.tag,
            argv=tuple(plan.command(self._file(name, "plan"))),
            env={
                **base_environment(),
                "RUNYARD_JOB_ID": job.ref,
                job_environment.MARKER: name,
            },
            cwd=str(self._folder),
            grace_s=GRACE_S,
            leftover_grace_s=self._settings.leftover_grace_s,
            kill_timeout_s=self._settings.kill_timeout_s,
        )

    def outcome(self, job_ref: str, preparation_id: str) -> dict[str, Any] | None:  # noqa: ARG002
        """The first thing that stands against a start, if there is one, and the whole report."""
        report = plan.read_report(self._file(preparation_id, "report"))
        if report is None:
            return None
        against = next((one for one in report["checks"] if one["verdict"] == "fail"), None)
        if against is None:
            return {"code": PASSED, "report": dict(report)}
        told = {name: against[name] for name in ("code", "check", "params")}
        return {**told, "report": dict(report)}

    def forget(self, ended: Preparation) -> None:
        """Its report is in the store; the plan holds the job's environment."""
        for kind in ("plan", "report"):
            self._file(ended.preparation_id, kind).unlink(missing_ok=True)

    def _wanted(self, job: Job, begun: Preparation) -> plan.Plan:
        spec = job.spec
        places = places_of(self._settings, job)
        return plan.Plan(
            argv=_argv(spec, command.render(spec.command, spec.params, places)),
            env=self._environment(job, begun, places),
            cwd=spec.working_dir or places.output_dir,
            output_dir=places.output_dir,
            checkpoint_dir=places.checkpoint_dir,
            report_file=str(self._file(begun.preparation_id, "report")),
            ports={one.name: one.port for one in spec.services if one.port is not None},
            wants_gpu=spec.request.gpu_milli > 0,
            fetches_from_hub=any(
                uri.startswith("hf://")
                for uri in (*spec.prefetch, *(one.uri for one in spec.datasets))
            ),
        )

    def _environment(self, job: Job, begun: Preparation, places: command.Places) -> dict[str, str]:
        """As the job's own will be, but for the GPUs and ports that it has not been given yet."""
        pooled = job_services.pooled(job.spec.services)
        facts = job_environment.Facts(
            base=base_environment(),
            spec=job.spec,
            job_ref=job.ref,
            attempt_id=begun.preparation_id,
            attempt_number=job.attempt_number + 1,
            run_dir=str(self._settings.data_dir / "attempts" / begun.preparation_id),
            output_dir=places.output_dir,
            checkpoint_dir=places.checkpoint_dir,
            cpu_milli=job.spec.request.cpu_milli,
            params=job.spec.params,
            ports=(0,) * pooled,
        )
        return job_environment.build(facts)

    @property
    def _folder(self) -> Path:
        return self._settings.data_dir / "preflight"

    def _file(self, preparation_id: str, kind: str) -> Path:
        return self._folder / f"{preparation_id}.{kind}.json"


def _argv(spec: JobSpec, argv: tuple[str, ...]) -> tuple[str, ...]:
    """As it will be run: with torchrun, whose module must be there too."""
    shape, here = spec.distributed, distributed.LOCAL_ADDRESS
    if shape is None or shape.launcher != "torchrun":
        return argv
    return distributed.torchrun_argv(argv, shape, distributed.Meeting("", here, 0), 0, here)
