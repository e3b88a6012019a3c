"""What an executor is asked to start: places, command, environment and limits of an attempt."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import replace

from runyard.domain import command, job_environment, job_services
from runyard.domain.job import Attempt, Job, JobSpec
from runyard.domain.job_environment import Facts
from runyard.engine import job_dirs
from runyard.engine.launch import container_launch, gang_launch
from runyard.engine.launch.starts import Start
from runyard.executors.base import Launch, ServiceLaunch
from runyard.settings import Settings


def of(
    job: Job, attempt: Attempt, start: Start, settings: Settings, base: Mapping[str, str]
) -> Launch:
    spec = start.spec(job.spec)
    places = replace(places_of(settings, job), resume_from=start.resume_from)
    facts = _facts(job, attempt, start, places, settings, base)
    argv = command.render(spec.command, attempt.params, places)
    environment = job_environment.build(facts)
    slices = gang_launch.slices(facts, argv, attempt)
    if spec.image is not None:
        argv, environment = gang_launch.in_one_process(argv, environment, slices)
        slices = ()
    limit = _memory_limit(spec, attempt, settings)
    return Launch(
        attempt_id=attempt.attempt_id,
        job_ref=job.ref,
        tag=attempt.tag,
        argv=argv,
        env=environment,
        cwd=container_launch.working_dir(spec, places.output_dir),
        make_dirs=container_launch.folders(job, settings),
        grace_s=spec.grace_s,
        leftover_grace_s=settings.leftover_grace_s,
        kill_timeout_s=settings.kill_timeout_s,
        timeout_s=spec.timeout_s,
        log_cap_bytes=settings.log_cap_mb * 1024 * 1024,
        gpu_uuids=facts.gpu_uuids,
        ports=() if attempt.slices else attempt.ports,
        gpu_shared=attempt.request.shares_gpu,
        nice=settings.job_nice,
        memory_limit_mb=limit,
        memory_soft=settings.enforce_memory == "always",
        pids_limit=settings.job_pids_limit or None,
        own_group=_has_own_group(settings, limit),
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


def _facts(
    job: Job,
    attempt: Attempt,
    start: Start,
    places: command.Places,
    settings: Settings,
    base: Mapping[str, str],
) -> Facts:
    spec = start.spec(job.spec)
    fetched = f"{settings.data_dir}/prefetch/{job.ref}/files"
    facts = Facts(
        base=container_launch.base_of(spec, base),
        spec=spec,
        job_ref=job.ref,
        attempt_id=attempt.attempt_id,
        attempt_number=attempt.number,
        run_dir=str(settings.data_dir / "attempts" / attempt.attempt_id),
        output_dir=places.output_dir,
        checkpoint_dir=places.checkpoint_dir,
        cpu_milli=attempt.request.cpu_milli,
        resume_from=places.resume_from,
        params=attempt.params,
        batch_scale=start.batch_scale,
        gpu_uuids=tuple(grant.uuid for grant in attempt.gpus),
        ports=attempt.ports,
        prefetch_dir=fetched if spec.downloads else None,
    )
    return gang_launch.own_facts(facts, attempt)


def _memory_limit(spec: JobSpec, attempt: Attempt, settings: Settings) -> int | None:
    """Only what a person wrote: the fair share that others get is a guess."""
    if not spec.memory_asked or settings.enforce_memory == "off":
        return None
    return attempt.request.memory_mb or None


def _has_own_group(settings: Settings, memory_limit: int | None) -> bool:
    if settings.cgroups == "auto":
        return bool(memory_limit or settings.job_pids_limit)
    return settings.cgroups == "all"


def _asked(spec: JobSpec, name: str, default: float) -> float:
    """How long ranks wait for each other to end: as their job says, else as the server is set."""
    asked: float | None = getattr(spec.distributed, name, None)
    return default if asked is None else asked


def places_of(settings: Settings, job: Job) -> command.Places:
    data_dir = str(settings.data_dir)
    return command.Places(
        job_dirs.output_dir(job, data_dir), job_dirs.checkpoint_dir(job, data_dir)
    )


def _services(facts: Facts, places: command.Places) -> tuple[ServiceLaunch, ...]:
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
