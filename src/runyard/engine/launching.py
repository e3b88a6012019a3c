"""Placed attempts become running supervisors."""

from __future__ import annotations

import os
import pwd
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from runyard.domain import command, job_environment, job_services
from runyard.domain.job import Attempt, Job, JobSpec
from runyard.engine import container_launch, gang_launch, job_dirs, story
from runyard.engine.parts import Parts
from runyard.engine.resuming import Resuming
from runyard.engine.starts import AS_SUBMITTED, Start
from runyard.executors.base import ExecutorUnavailable, Launch, ServiceLaunch
from runyard.settings import Settings

CHECKING_S = 600.0  # that choosing a checkpoint may take


@dataclass(frozen=True, slots=True)
class Placed:
    """A committed placement that this node must start."""

    job: Job
    attempt: Attempt
    start: Start = AS_SUBMITTED


class Launcher:
    def __init__(
        self,
        parts: Parts,
        before: Callable[[Attempt], None],
        failed: Callable[[Placed], None],
    ) -> None:
        self._parts = parts
        self._before = before
        self._failed = failed
        self._base_env = base_environment()
        self.resuming: Resuming | None = None
        self._checking: dict[str, float] = {}  # attempt -> since when its checkpoint is chosen

    def launch(self, placed: Placed) -> None:
        """Hand the attempt to its executor. One that goes on where another was cut off is handed
        over a little later: what it goes on from is checked first."""
        if self.resuming is None or not self.resuming.may_resume(placed.job, placed.attempt):
            self._start(placed)
            return
        self._checking[placed.attempt.attempt_id] = time.monotonic()
        name = f"resume {placed.attempt.attempt_id}"
        threading.Thread(target=self._resume, args=(placed,), name=name, daemon=True).start()

    def _resume(self, placed: Placed) -> None:
        assert self.resuming is not None
        path = None
        try:
            path = self.resuming.path(placed.job, placed.attempt)
        except Exception as error:
            log = story.of(placed.job.ref, placed.attempt.attempt_id)
            log.opt(exception=error).error("no checkpoint could be chosen: it begins anew")
        try:
            self._start(replace(placed, start=replace(placed.start, resume_from=path)))
        finally:
            self._checking.pop(placed.attempt.attempt_id, None)

    def is_checking(self, attempt_id: str) -> bool:
        """Whether it is on its way, however long a slow disk takes: nothing of it is there yet,
        and yet it is not lost. One that hangs is given up some time."""
        since = self._checking.get(attempt_id)
        return since is not None and time.monotonic() - since < CHECKING_S

    def _start(self, placed: Placed) -> None:
        log = story.of(placed.job.ref, placed.attempt.attempt_id)
        parts = self._parts
        if placed.attempt.slices and parts.store.shared and parts.machine.is_silent():
            log.error("not handed over: nobody heard of this server for longer than its lease")
            self._failed(placed)
            return
        self._before(placed.attempt)
        self._count(placed)
        try:
            self._parts.executors[placed.attempt.executor].start(self._plan(placed))
        except (ExecutorUnavailable, OSError) as error:
            log.error("could not be handed to its executor: {}", error)
            self._failed(placed)
            return
        log.debug("handed to the {} executor: {}", placed.attempt.executor, placed.job.spec.name)

    def _count(self, placed: Placed) -> None:
        job, tallies = placed.job, self._parts.tallies
        since = max(job.queued_at, job.not_before or 0.0)
        tallies.starts.add(placed.attempt.executor)
        tallies.wait_s.add(max(0.0, self._parts.clock() - since))

    def _plan(self, placed: Placed) -> Launch:
        job, attempt, settings = placed.job, placed.attempt, self._parts.settings
        spec = placed.start.spec(job.spec)
        run_dir = settings.data_dir / "attempts" / attempt.attempt_id
        places = replace(places_of(settings, job), resume_from=placed.start.resume_from)
        output_dir = places.output_dir
        facts = job_environment.Facts(
            base=container_launch.base_of(spec, self._base_env),
            spec=spec,
            job_ref=job.ref,
            attempt_id=attempt.attempt_id,
            attempt_number=attempt.number,
            run_dir=str(run_dir),
            output_dir=output_dir,
            checkpoint_dir=places.checkpoint_dir,
            cpu_milli=attempt.request.cpu_milli,
            resume_from=places.resume_from,
            params=attempt.params,
            batch_scale=placed.start.batch_scale,
            gpu_uuids=tuple(grant.uuid for grant in attempt.gpus),
            ports=attempt.ports,
            prefetch_dir=f"{settings.data_dir}/prefetch/{job.ref}/files"
            if spec.downloads
            else None,
        )
        facts = gang_launch.own_facts(facts, attempt)
        argv = command.render(spec.command, attempt.params, places)
        environment = job_environment.build(facts)
        slices = gang_launch.slices(facts, argv, attempt)
        if spec.image is not None:
            argv, environment = gang_launch.in_one_process(argv, environment, slices)
            slices = ()
        # Only what a person wrote: the fair share that others get is a guess.
        enforced = spec.memory_asked and settings.enforce_memory != "off"
        limit = attempt.request.memory_mb or None if enforced else None
        return Launch(
            attempt_id=attempt.attempt_id,
            job_ref=job.ref,
            tag=attempt.tag,
            argv=argv,
            env=environment,
            cwd=container_launch.working_dir(spec, output_dir),
            make_dirs=container_launch.folders(job, settings),
            grace_s=spec.grace_s,
            leftover_grace_s=settings.leftover_grace_s,
            kill_timeout_s=settings.kill_timeout_s,
            timeout_s=spec.timeout_s,
            log_cap_bytes=settings.log_cap_mb * 1024 * 1024,
            gpu_uuids=facts.gpu_uuids,
            gpu_shared=attempt.request.shares_gpu,
            nice=settings.job_nice,
            memory_limit_mb=limit,
            memory_soft=settings.enforce_memory == "always",
            pids_limit=settings.job_pids_limit or None,
            own_group=settings.cgroups == "all"
            or (settings.cgroups == "auto" and bool(limit or settings.job_pids_limit)),
            tty=spec.tty,
            isolation=spec.isolation,
            services=_services(facts, places),
            cpu_milli=attempt.request.cpu_milli,
            gpu_milli=attempt.request.gpu_milli,
            slices=slices,
            gang_grace_s=_asked(spec, "gang_grace_s", settings.gang_grace_s),
            finish_skew_s=_asked(spec, "finish_skew_s", settings.finish_skew_s),
            image=spec.image,
            container=container_launch.container(job, attempt, facts, settings),
        )


def _asked(spec: JobSpec, name: str, default: float) -> float:
    """How long ranks wait for each other to end: as their job says, else as the server is set."""
    asked: float | None = getattr(spec.distributed, name, None)
    return default if asked is None else asked


def places_of(settings: Settings, job: Job) -> command.Places:
    data_dir = str(settings.data_dir)
    return command.Places(
        job_dirs.output_dir(job, data_dir), job_dirs.checkpoint_dir(job, data_dir)
    )


def _services(facts: job_environment.Facts, places: command.Places) -> tuple[ServiceLaunch, ...]:
    ports = job_services.ports(facts.spec, facts.ports)
    return tuple(
        ServiceLaunch(
            name=service.name,
            argv=command.render(
                service.command, {**facts.params, "port": ports[service.name]}, places
            ),
            env=job_environment.of_service(facts, service),
            port=ports[service.name],
            health=service.health,
            ready_timeout_s=service.ready_timeout_s,
            restart=service.restart,
        )
        for service in facts.spec.services
    )


def base_environment() -> dict[str, str]:
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
