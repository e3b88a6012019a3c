"""What the prefetch program is told to do for a job, and what it told of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from runyard.domain import datasets, job_environment
from runyard.domain.job import Job, JobSpec
from runyard.domain.preparation import GRACE_S, Preparation
from runyard.domain.reasons import Reason
from runyard.engine.launch.launch_plan import base_environment
from runyard.executors.base import Launch
from runyard.prefetch import plan
from runyard.settings import Settings

# Variables of the job that would change how our own interpreter runs.
_NOT_OURS = ("PYTHON", "LD_")


def folder_of(settings: Settings, job_ref: str) -> Path:
    return settings.data_dir / "prefetch" / job_ref


def files_dir(settings: Settings, job: Job) -> str:
    """Where the job finds what was fetched for it, by name."""
    return str(folder_of(settings, job.ref) / "files")


def drop_links(settings: Settings, job: Job) -> None:
    """The job has ended: what was fetched for it no longer counts as used. It stays in the cache
    for the next one, and a retry asks for it again."""
    if job.spec.downloads:
        shutil.rmtree(folder_of(settings, job.ref), ignore_errors=True)


class PrefetchPlan:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def launch(self, job: Job, begun: Preparation) -> Launch:
        """Writes the plan; the launch runs the program on it."""
        folder = folder_of(self._settings, job.ref)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        quota_gb = self._settings.cache_quota_gb
        wanted = plan.Plan(
            cache_dir=str(self._settings.data_dir / "cache"),
            link_dir=files_dir(self._settings, job),
            items=_items(job.spec),
            progress_file=str(_progress_file(self._settings, job.ref, begun.preparation_id)),
            quota_bytes=int(quota_gb * 1024**3) if quota_gb else None,
        )
        path = folder / f"{begun.preparation_id}.plan.json"
        plan.write(wanted, path)
        return Launch(
            attempt_id=begun.preparation_id,
            job_ref=job.ref,
            tag=begun.tag,
            argv=tuple(plan.command(path)),
            env=self._environment(job, begun),
            cwd=str(folder),
            grace_s=GRACE_S,
            leftover_grace_s=self._settings.leftover_grace_s,
            kill_timeout_s=self._settings.kill_timeout_s,
        )

    def progress(self, job_ref: str, preparation_id: str) -> plan.Progress | None:
        """How far a download is; None while nothing is known."""
        return plan.read_progress(_progress_file(self._settings, job_ref, preparation_id))

    def as_seen(self, reason: Reason, job_ref: str) -> Reason:
        """The reason of a job that is being prepared, with how far it is."""
        name = reason.params.get("preparation")
        told = self.progress(job_ref, str(name)) if name else None
        if told is None:
            return reason
        shown = ("bytes_done", "bytes_total", "files_done", "files_total", "current", "rate_bps")
        known = {field: told[field] for field in shown if field in told}  # type: ignore[literal-required]
        return Reason(reason.code, {**reason.params, **known})

    def outcome(self, job_ref: str, preparation_id: str) -> dict[str, Any] | None:
        """What it told when it ended: a code, and what went wrong with which address."""
        told = self.progress(job_ref, preparation_id)
        found = told.get("outcome") if told else None
        return {**found} if found else None

    def _environment(self, job: Job, begun: Preparation) -> dict[str, str]:
        """The person's tokens and proxies, but nothing that bends the interpreter."""
        theirs = {
            name: value
            for name, value in job.spec.env_vars.items()
            if not name.startswith(_NOT_OURS)
        }
        return {
            **base_environment(),
            **theirs,
            "RUNYARD_JOB_ID": job.ref,
            job_environment.MARKER: begun.preparation_id,
        }


def _items(spec: JobSpec) -> tuple[plan.Item, ...]:
    wanted = [plan.Item(uri) for uri in spec.prefetch]
    wanted += [plan.Item(one.uri, datasets.file_name(one), one.hash) for one in spec.datasets]
    return tuple(wanted)


def _progress_file(settings: Settings, job_ref: str, preparation_id: str) -> Path:
    return folder_of(settings, job_ref) / f"{preparation_id}.progress.json"
