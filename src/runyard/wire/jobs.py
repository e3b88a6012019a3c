"""A job as it is asked for over HTTP or in a job file, and how it becomes a Submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runyard.domain import dependencies, errors, job, job_services
from runyard.wire import distributed_field, job_fields, refusals, service_clashes
from runyard.wire import job_types as types
from runyard.wire.checkpoint_field import JobCheckpoint
from runyard.wire.distributed_field import JobDistributed
from runyard.wire.notify_targets import MOST_TARGETS, JobNotify
from runyard.wire.recovery_field import JobRecovery

# Kept with the job beside its spec.
KEPT_FIELDS = ("recovery",)
# What a job would miss if nobody told the person that this release does not act on it.
NOT_YET_HONOURED: tuple[str, ...] = ()


class ArrayElement(BaseModel):
    """Which element of a job array this is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    array_id: types.ShortText
    index: Annotated[int, types.NotBool, Field(ge=0, le=10_000_000)]
    limit: Annotated[int, types.NotBool, Field(ge=0, le=1_000_000)] = 0


class JobService(BaseModel):
    """A helper that runs beside the job, such as a reward server: started by a command here, or
    run by the client and named by its address."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: types.ServiceName
    command: types.Command | None = None
    url: types.ServiceUrl | None = None
    port: Annotated[Literal["auto"] | types.PortNumber, types.Lowered] = "auto"
    health: types.Health = "tcp"
    ready_timeout_s: types.Seconds = 60.0
    restart: Annotated[Literal["never", "on-failure"], types.Lowered] = "never"
    env_vars: types.EnvVars | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> JobService:
        if self.command is None and self.url is None:
            job_fields.refuse("no_command", "needs a command, or the url of a running service")
        if self.url is not None and (beside := self.model_fields_set - {"name", "url"}):
            named = ", ".join(sorted(beside))
            job_fields.refuse("bad_value", f"a service with a url is not started here: no {named}")
        return self

    def to_service(self) -> job.Service:
        assert self.command is not None
        return job.Service(
            name=self.name,
            command=self.command,
            port=None if self.port == "auto" else self.port,
            health=self.health,
            ready_timeout_s=self.ready_timeout_s,
            restart=self.restart,
            env_vars=self.env_vars or {},
        )


class JobSubmission(BaseModel):
    """One job to run. A field that is left out or null takes its default."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="JobSubmission")

    command: types.Command
    name: types.Name | None = None
    description: types.Description | None = None
    job_type: Annotated[job.JobType, types.Lowered] | None = None
    working_dir: types.AbsolutePath | None = None
    env_vars: types.EnvVars | None = None
    base_env: types.BaseEnv | None = None
    image: types.ShortText | None = None
    executor: Annotated[Literal["auto", "local", "docker", "ray"], types.Lowered] | None = None
    cpu_cores: types.CpuCores | None = None
    memory_gb: types.MemoryGb | None = None
    gpu_count: types.GpuCount | None = None
    gpu_type: types.ShortText | None = None
    ports: types.Ports | None = None
    priority: Annotated[job.Priority, types.Lowered] | None = None
    max_retries: Annotated[int, types.NotBool, Field(ge=0, le=100)] | None = None
    retry_delays: Annotated[list[types.Delay], Field(max_length=100)] | None = None
    depends_on: types.DependsOn | None = None
    labels: types.Labels | None = None
    customer_id: Literal[1] | None = None
    workspace_id: Literal[1] | None = None
    dataset_ids: Annotated[list[types.DatasetId], Field(max_length=1000)] | None = None
    output_path: types.Path | None = None
    params: types.Params | None = None
    timeout_s: types.Seconds | None = None
    grace_s: types.Grace | None = None
    hold: bool | None = None
    array: ArrayElement | None = None
    prefetch: types.Prefetch | None = None
    preflight: bool | None = None
    checkpoint: JobCheckpoint | None = None
    services: Annotated[list[JobService], Field(max_length=20)] | None = None
    notify: Annotated[list[JobNotify], Field(max_length=MOST_TARGETS)] | None = None
    recovery: JobRecovery | None = None
    lease_s: types.Seconds | None = None
    on_lease_lost: Literal["cancel", "keep"] | None = None
    distributed: JobDistributed | None = None
    tty: bool | None = None
    isolation: Annotated[Literal["none", "strict"], types.Lowered] | None = None

    def to_submission(self) -> job.Submission:
        ports = self.ports if self.ports is not None else 0
        port_names = () if isinstance(ports, int) else tuple(ports)
        own_ports = ports if isinstance(ports, int) else len(port_names)
        spec = self._spec(port_names)
        return job.Submission(
            spec=spec,
            wanted=job.Wanted(
                cpu_cores=self.cpu_cores,
                memory_gb=self.memory_gb,
                gpu_count=self.gpu_count,
                gpu_type=self.gpu_type,
                port_count=own_ports + job_services.pooled(spec.services),
            ),
            priority=self.priority or job.Priority.MEDIUM,
            max_retries=self.max_retries,
            grace_s=self.grace_s,
            depends_on=self.depends_on or (),
            hold=bool(self.hold),
        )

    def _spec(self, port_names: tuple[str, ...]) -> job.JobSpec:
        # The engine fills in max_retries, grace_s and the request: it knows the defaults.
        array = self.array
        place = job.ArrayPlace(array.array_id, array.index, array.limit) if array else None
        return job.JobSpec(
            name=self.name or job_fields.default_name(self.command),
            command=self.command,
            job_type=job.JobType.DISTRIBUTED if self.distributed else job.JobType.SINGLE,
            description=self.description or "",
            working_dir=self.working_dir,
            env_vars=self.env_vars or {},
            base_env=self.base_env or {},
            image=self.image,
            executor=self.executor or "auto",
            port_names=port_names,
            retry_delays=tuple(self.retry_delays) if self.retry_delays is not None else None,
            dataset_ids=tuple(self.dataset_ids or ()),
            output_path=self.output_path,
            params=self.params or {},
            labels=self.labels or {},
            timeout_s=self.timeout_s,
            array=place,
            services=tuple(one.to_service() for one in self.services or () if not one.url),
            service_urls={one.name: one.url for one in self.services or () if one.url},
            lease=self._lease(),
            prefetch=tuple(self.prefetch or ()),
            preflight=self.preflight,
            notify=tuple(target.to_target() for target in self.notify or ()),
            checkpoint=self.checkpoint.to_spec() if self.checkpoint else None,
            distributed=self.distributed.to_spec() if self.distributed else None,
            tty=bool(self.tty),
            isolation=self.isolation or "none",
            extra={
                name: value
                for name in KEPT_FIELDS
                if (value := getattr(self, name)) not in (None, [], {})
            },
        )

    def _lease(self) -> job.LeaseTerms | None:
        if self.lease_s is None:
            return None
        return job.LeaseTerms(self.lease_s, self.on_lease_lost or "cancel")

    def warnings(self) -> list[dict[str, Any]]:
        """What was accepted and kept, but changes nothing in this release."""
        return [
            {"code": "not_yet_honoured", "params": {"field": name}}
            for name in NOT_YET_HONOURED
            if getattr(self, name) not in (None, [], {}, False)
        ]


FIELDS = tuple(JobSubmission.model_fields)


def read_job(body: Any, where: str = "") -> JobSubmission:
    """The job in a parsed body; UnknownField, InvalidJob or JobTypeNotAvailable say what is wrong
    with it. `where` is put before the names of fields (`jobs[3].`)."""
    if not isinstance(body, Mapping):
        found = refusals.field(where.rstrip(".") or "job", "wrong_type", "must be an object")
        raise refusals.refusal(errors.InvalidJob, [found])
    try:
        asked = JobSubmission.model_validate(body)
    except ValidationError as error:
        raise refusals.from_pydantic(error, errors.InvalidJob, FIELDS, where) from None
    if asked.job_type not in (None, job.JobType.SINGLE, job.JobType.DISTRIBUTED):
        raise errors.JobTypeNotAvailable(job_type=asked.job_type.value)
    if wrong := distributed_field.problems(asked, where):
        raise refusals.refusal(errors.InvalidJob, wrong)
    for ref, _ in asked.depends_on or ():
        if not (ref.startswith(dependencies.BATCH_MARK) or job_fields.is_job_ref(ref)):
            raise errors.UnknownDependency(job=ref)
    names = asked.ports if isinstance(asked.ports, tuple) else ()
    if clashes := service_clashes.problems(asked.services or (), names, where):
        raise refusals.refusal(errors.InvalidJob, clashes)
    if asked.image is not None and asked.executor == "local":
        found = refusals.field(where + "executor", "image_needs_container", _IMAGE_AND_LOCAL)
        raise refusals.refusal(errors.InvalidJob, [found])
    if asked.image is None and asked.executor == "docker":
        found = refusals.field(where + "image", "container_needs_image", _DOCKER_WITHOUT_IMAGE)
        raise refusals.refusal(errors.InvalidJob, [found])
    return asked


_DOCKER_WITHOUT_IMAGE = "the docker executor runs images: give one"
_IMAGE_AND_LOCAL = "a job with an image never runs outside it: use auto or docker"
