"""The environment of an attempt: a clean base, what the CLI sent, the person's own, then ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.domain import datasets, job_services
from runyard.domain.command import param_text
from runyard.domain.job import JobSpec, Service

FROM_CLI = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH")

MARKER = "RUNYARD_ATTEMPT_ID"  # by it a process is known to belong to an attempt

# Names inside the run dir
METRICS_FILE = "metrics.jsonl"
STOP_FILE = "should_stop"
TEMP_DIR = "tmp"

_RESUME_FROM = "RUNYARD_RESUME_FROM"
_NOT_IN_NAMES = re.compile(r"[^A-Z0-9]+")


@dataclass(frozen=True, slots=True)
class Facts:
    """What an attempt's environment is made of. `base` is HOME, USER, LANG and PATH of the account
    it runs as; `params` are the attempt's, which may differ from its job's."""

    base: Mapping[str, str]
    spec: JobSpec
    job_ref: str
    attempt_id: str
    attempt_number: int
    run_dir: str
    output_dir: str
    checkpoint_dir: str
    cpu_milli: int
    resume_from: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    gpu_uuids: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    prefetch_dir: str | None = None
    batch_scale: str = "1"


def build(facts: Facts) -> dict[str, str]:
    """A person may change our comforts (thread counts, TMPDIR ...), but not what a job must be
    able to trust: which GPUs are its own, and every RUNYARD_ name we set."""
    sent = facts.spec.base_env
    environment = dict(facts.base)
    environment.update((name, sent[name]) for name in FROM_CLI if name in sent)
    environment.update(_comforts(facts))
    environment.update(facts.spec.env_vars)
    environment.pop(_RESUME_FROM, None)  # one that came from elsewhere would lie
    environment.update(_own(facts))
    return environment


def metrics_file(facts: Facts) -> str:
    return f"{facts.run_dir}/{METRICS_FILE}"


def variable_name(name: str) -> str:
    """A parameter's or port's name as it appears inside a variable's name."""
    return _NOT_IN_NAMES.sub("_", name.upper()).strip("_")


def _comforts(facts: Facts) -> dict[str, str]:
    threads = str(max(1, facts.cpu_milli // 1000))
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "TMPDIR": f"{facts.run_dir}/{TEMP_DIR}",
        # so that a collective that hangs leaves a trace of who waited for whom
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{facts.run_dir}/nccl_trace_rank_",
    }


def of_service(facts: Facts, service: Service) -> dict[str, str]:
    """What a service gets besides the environment of its job."""
    own = _own(facts)
    given = {name: value for name, value in service.env_vars.items() if name not in own}
    port = job_services.ports(facts.spec, facts.ports)[service.name]
    return {**given, "RUNYARD_SERVICE": service.name, "RUNYARD_PORT": str(port)}


def _ports(facts: Facts) -> dict[str, str]:
    own = job_services.own_ports(facts.spec, facts.ports)
    found = {f"RUNYARD_PORT_{index}": str(port) for index, port in enumerate(own)}
    for name, port in zip(facts.spec.port_names, own, strict=False):
        found[f"RUNYARD_PORT_{variable_name(name)}"] = str(port)
    for name, port in job_services.ports(facts.spec, facts.ports).items():
        found[f"RUNYARD_PORT_{variable_name(name)}"] = str(port)
        found[f"RUNYARD_SERVICE_{variable_name(name)}_URL"] = job_services.url(port)
    return found


def _own(facts: Facts) -> dict[str, str]:
    own = {
        "RUNYARD_JOB_ID": facts.job_ref,
        "RUNYARD_ATTEMPT": str(facts.attempt_number),
        MARKER: facts.attempt_id,
        "RUNYARD_RUN_DIR": facts.run_dir,
        "RUNYARD_OUTPUT_DIR": facts.output_dir,
        "RUNYARD_CHECKPOINT_DIR": facts.checkpoint_dir,
        "RUNYARD_METRICS_FILE": metrics_file(facts),
        "RUNYARD_STOP_FILE": f"{facts.run_dir}/{STOP_FILE}",
        "RUNYARD_BATCH_SCALE": facts.batch_scale,
        "RUNYARD_PARAMS": json.dumps(dict(facts.params), ensure_ascii=False),
        "CUDA_VISIBLE_DEVICES": ",".join(facts.gpu_uuids),
    }
    if facts.prefetch_dir:
        own["RUNYARD_PREFETCH_DIR"] = facts.prefetch_dir
        for one in facts.spec.datasets:
            own[datasets.variable(one.name)] = f"{facts.prefetch_dir}/{datasets.file_name(one)}"
    if facts.spec.checkpoint is not None and facts.spec.checkpoint.every is not None:
        own["RUNYARD_CHECKPOINT_EVERY"] = str(facts.spec.checkpoint.every)
    if facts.resume_from:
        own[_RESUME_FROM] = facts.resume_from
    for name, value in facts.params.items():
        own[f"RUNYARD_PARAM_{variable_name(name)}"] = param_text(value)
    own |= _ports(facts)
    for name, url in facts.spec.service_urls.items():
        own[f"RUNYARD_SERVICE_{variable_name(name)}_URL"] = url
        own[f"RUNYARD_PORT_{variable_name(name)}"] = url.rpartition(":")[2]
    if facts.spec.array is not None:
        own["RUNYARD_ARRAY_ID"] = facts.spec.array.array_id
        own["RUNYARD_ARRAY_INDEX"] = str(facts.spec.array.index)
    return own
