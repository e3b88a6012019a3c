"""What brings the image of a job, and what was told of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.domain import job_environment, reasons
from runyard.domain.job import Job, JobSpec
from runyard.domain.preparation import GRACE_S, Preparation
from runyard.domain.reasons import Reason
from runyard.domain.scheduling import wait_reasons
from runyard.domain.states import Stage
from runyard.engine.launch.launch_plan import base_environment
from runyard.engine.parts import Parts
from runyard.executors.base import ExecutorUnavailable, Launch
from runyard.supervisor import protocol

EXECUTOR = "docker"
_SHOWN = ("bytes_done", "bytes_total", "layers_done", "layers_total")


class PullPlan:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._attempts = parts.settings.data_dir / protocol.ATTEMPTS

    def look(self, jobs: Iterable[Job]) -> dict[str, bool]:
        """Which images that jobs wait for are here; those nobody can say that of are left out."""
        wanted = {job.spec.image for job in jobs if job.spec.pull and job.stage is None}
        named = sorted(image for image in wanted if image is not None)
        if self._parts.images is None:
            # Another server may bring it; where there is none, placing tells why it waits.
            return {} if self._parts.store.shared else dict.fromkeys(named, True)
        if EXECUTOR in self._parts.machine.missing:
            return {}
        seen = ((image, self._is_here(image)) for image in named)
        return {image: found for image, found in seen if found is not None}

    def spared(self, spec: JobSpec) -> JobSpec:
        """Without the pull, where that would not be what it waits for."""
        if not spec.pull or spec.image is None:
            return spec
        missing = EXECUTOR in self._parts.machine.missing
        return replace(spec, pull=not missing and not self._is_here(spec.image))

    def launch(self, job: Job, begun: Preparation) -> Launch:
        """ExecutorUnavailable when the engine went away meanwhile."""
        name, settings = begun.preparation_id, self._parts.settings
        if self._parts.images is None or job.spec.image is None:
            raise ExecutorUnavailable(EXECUTOR)
        return Launch(
            attempt_id=name,
            job_ref=job.ref,
            tag=begun.tag,
            argv=self._parts.images.pull(job.spec.image, str(self._progress_file(name))),
            # Credentials are those of the server's user, never the job's.
            env={
                **base_environment(),
                "RUNYARD_JOB_ID": job.ref,
                job_environment.MARKER: name,
            },
            cwd=str(settings.data_dir),
            grace_s=GRACE_S,
            leftover_grace_s=settings.leftover_grace_s,
            kill_timeout_s=settings.kill_timeout_s,
        )

    def outcome(self, job_ref: str, preparation_id: str) -> dict[str, Any] | None:  # noqa: ARG002
        told = self._told(preparation_id)
        if not told.get("error"):
            return None
        return {"code": told.get("code"), "uri": told.get("image"), "message": told["error"]}

    def as_seen(self, reason: Reason, job: Job) -> Reason:
        """Why a job that waits for its image does so, with how far that is."""
        if reason.params.get("stage") == Stage.PULL.value:
            known = self._progress(str(reason.params.get("preparation") or ""))
            params = {"image": job.spec.image, **reason.params, **known}
            return Reason(reasons.PULLING_IMAGE, params)
        why = self._parts.machine.missing.get(EXECUTOR)
        if why is None or not job.spec.pull or reason.params:
            return reason
        return wait_reasons.executor_unavailable(EXECUTOR, why)

    def with_progress(self, reason: Reason, attempt_id: str) -> Reason:
        """Why an attempt has no container yet, with how far its own pull is, if there is one."""
        if self._told(attempt_id).get("complete"):
            return reason
        return Reason(reason.code, {**reason.params, **self._progress(attempt_id)})

    def _progress(self, unit: str) -> dict[str, Any]:
        told = self._told(unit)
        return {name: told[name] for name in _SHOWN if name in told}

    def _is_here(self, image: str) -> bool | None:
        try:
            return None if self._parts.images is None else self._parts.images.is_here(image)
        except ExecutorUnavailable:
            return None

    def _told(self, unit: str) -> dict[str, Any]:
        """What was written of the pull of a preparation, or of an attempt that does its own."""
        try:
            told = json.loads(self._progress_file(unit).read_bytes())
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}

    def _progress_file(self, unit: str) -> Path:
        return self._attempts / unit / protocol.PULL
