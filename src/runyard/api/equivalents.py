"""The same job as a job file and as a command line, for people to copy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from runyard.wire.jobs import FIELDS, JobSubmission, read_job

# What every job has unless it says otherwise: nobody wants to read that.
_USUAL: dict[str, Any] = {
    "description": "",
    "job_type": "single",
    "executor": "auto",
    "priority": "medium",
    "customer_id": 1,
    "workspace_id": 1,
    "isolation": "none",
    "ports": 0,
    "tty": False,
    "hold": False,
}
_NEVER = ("base_env", "array", "preflight")  # of the machine or of one run, not of the job
_FIRST = ("name", "description", "command", "working_dir", "env_vars", "params")


def _pairs(flag: str) -> Callable[[Any], list[str]]:
    return lambda found: [word for name in found for word in (flag, f"{name}={found[name]}")]


def _each(flag: str) -> Callable[[Any], list[str]]:
    return lambda found: [word for one in found for word in (flag, str(one))]


def _seconds(flag: str) -> Callable[[Any], list[str]]:
    return lambda found: [flag, f"{found:g}s"]


def _one(flag: str) -> Callable[[Any], list[str]]:
    return lambda found: [flag, f"{found:g}" if isinstance(found, float) else str(found)]


def _ports(found: Any) -> list[str]:
    return ["--ports", str(found) if isinstance(found, int) else ",".join(found)]


def _after(found: Any) -> list[str]:
    return [
        word for ref, on in found for word in ("--after", ref + (":end" if on == "end" else ""))
    ]


_FLAGS: dict[str, Callable[[Any], list[str]]] = {
    "name": _one("--name"),
    "description": _one("--description"),
    "gpu_count": _one("--gpus"),
    "gpu_type": _one("--gpu-type"),
    "cpu_cores": _one("--cpus"),
    "memory_gb": lambda found: ["--mem", f"{found:g}GB"],
    "ports": _ports,
    "working_dir": _one("--workdir"),
    "env_vars": _pairs("-e"),
    "params": _pairs("--param"),
    "labels": _pairs("--label"),
    "output_path": _one("--output"),
    "dataset_ids": _each("--dataset"),
    "prefetch": _each("--prefetch"),
    "image": _one("--image"),
    "executor": _one("--executor"),
    "priority": _one("--priority"),
    "timeout_s": _seconds("--time"),
    "max_retries": _one("--retries"),
    "grace_s": _seconds("--grace"),
    "lease_s": _seconds("--lease"),
    "depends_on": _after,
    "isolation": _one("--isolation"),
    "tty": lambda _: ["--tty"],
    "hold": lambda _: ["--hold"],
}


def body_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a job that was submitted, as somebody would write them."""
    names = [*_FIRST, *(name for name in FIELDS if name not in _FIRST)]
    found = {name: answer.get(name) for name in names if name not in _NEVER}
    return {
        name: value
        for name, value in found.items()
        if value not in (None, (), [], {}) and value != _USUAL.get(name)
    }


def job_file(body: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(_plain(body), sort_keys=False, allow_unicode=True, width=100))


def command_line(body: Mapping[str, Any]) -> str:
    """`-f job.yaml` where there is no flag for something."""
    asked = read_job(body)
    given = _given(asked)
    if any(name not in _FLAGS for name in given):
        return "runyard submit -f job.yaml"
    words = [
        word for name, write in _FLAGS.items() if name in given for word in write(given[name])
    ]
    command = [asked.command] if isinstance(asked.command, str) else list(asked.command)
    return shlex.join(["runyard", "submit", *words, "--", *command])


def _given(asked: JobSubmission) -> dict[str, Any]:
    found = {name: getattr(asked, name) for name in asked.model_fields_set}
    return {
        name: value
        for name, value in found.items()
        if value not in (None, (), [], {})
        and value != _USUAL.get(name)
        and name not in (*_NEVER, "command")
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
