"""The flags of `run` and `submit`, and how they become a job's fields."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from runyard.cli import amounts, job_file
from runyard.cli.complaints import Complaint

EXECUTORS = ("auto", "local", "docker", "ray")
SENT_ENVIRONMENT = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--file", metavar="FILE", help="job file, YAML or JSON (- is stdin)")
    _add_job(parser.add_argument_group("the job"))
    _add_needs(parser.add_argument_group("what it needs"))
    _add_ranks(parser.add_argument_group("a distributed job"))
    _add_rules(parser.add_argument_group("when and how"))
    parser.add_argument(
        "command_words",
        metavar="-- COMMAND",
        nargs=argparse.REMAINDER,
        help="the program and its arguments; one quoted word with spaces runs by /bin/sh -c",
    )


def _add_job(group: Any) -> None:
    group.add_argument("--name")
    group.add_argument("--description")
    group.add_argument("--workdir", metavar="DIR", help="default: this directory")
    many: dict[str, Any] = {"action": "append", "default": []}
    group.add_argument("-e", "--env", metavar="K=V", help="K alone: as it is here", **many)
    group.add_argument("--env-file", metavar="FILE", help="lines of K=V", **many)
    group.add_argument("--param", metavar="K=V", help="{K} in the command becomes V", **many)
    group.add_argument("--label", metavar="K=V", help="to find it by: ls --label K=V", **many)
    group.add_argument("--output", metavar="DIR", help="where it writes what is to be kept")
    group.add_argument("--dataset", metavar="ID", type=int, help="see 'runyard datasets'", **many)
    group.add_argument(
        "--prefetch",
        metavar="URI",
        action="append",
        default=[],
        help="fetch this before the job starts, into a cache that jobs share",
    )
    group.add_argument("--image", help="container image to run in")
    group.add_argument("--executor", choices=EXECUTORS, help="where it runs (default: auto)")


def _add_needs(group: Any) -> None:
    group.add_argument("--gpus", metavar="N", help="2, TYPE:2, or 0.5 to share one")
    group.add_argument("--gpu-type", metavar="TYPE", help="part of its name: A100")
    group.add_argument("--cpus", metavar="N", type=float)
    group.add_argument(
        "--mem", metavar="SIZE", help="32GB, 512MB; no limit unless the server enforces it"
    )
    group.add_argument("--ports", metavar="N", help="how many, or names: tensorboard,api")
    group.add_argument("--port", metavar="NAME", action="append", default=[], help="one port")
    group.add_argument(
        "--service",
        metavar="NAME=COMMAND",
        action="append",
        default=[],
        help="a helper started before the job, on RUNYARD_PORT or {port}; ended with it",
    )


def _add_ranks(group: Any) -> None:
    group.add_argument("--nodes", metavar="N", type=int, help="machines; needs are those of one")
    group.add_argument("--procs-per-node", metavar="N", type=int, help="ranks on each of them")
    group.add_argument(
        "--launcher",
        choices=("env", "torchrun"),
        help="env: every rank runs the command (default); torchrun: it starts the ranks",
    )
    group.add_argument(
        "--placement",
        choices=("pack", "spread"),
        help="pack: on as few machines as hold it (default); spread: each node another machine",
    )


def _add_rules(group: Any) -> None:
    group.add_argument("--tty", action="store_true", help="give it a terminal of its own")
    group.add_argument(
        "--isolation",
        choices=("none", "strict"),
        help="strict: in namespaces of its own, which the kernel empties at its end",
    )
    group.add_argument("--priority", choices=("high", "medium", "low"))
    group.add_argument("--time", metavar="SPAN", help="end it after 90s, 15m, 2h, 1d, D-HH:MM:SS")
    group.add_argument("--retries", metavar="N", type=int, help="new attempts at most (3)")
    group.add_argument("--grace", metavar="SPAN", help="time to save itself when cancelled")
    group.add_argument(
        "--after",
        metavar="JOB[:end]",
        action="append",
        default=[],
        help="start when that one is completed; with :end however it ended",
    )
    group.add_argument("--array", metavar="0-15%4", help="one job per index, at most 4 at once")
    group.add_argument(
        "--preflight",
        action=argparse.BooleanOptionalAction,
        help="check before the start that it can run (default: with GPUs, downloads or torchrun)",
    )
    group.add_argument("--hold", action="store_true", help="do not start before 'release'")
    group.add_argument("--lease", metavar="SPAN", help="cancel it when this client dies")
    group.add_argument("--idempotency-key", metavar="KEY", help="submit at most once in 24 h")


def jobs(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The jobs to submit: of the file, changed by the flags, written out when it is an array."""
    given = _from_flags(args)
    found = job_file.read(args.file) if args.file else [{}]
    if args.file and len(found) > 1 and "command" in given:
        raise Complaint(f"{args.file} holds {len(found)} jobs: a command cannot be given as well.")
    merged = [_merged(job, given) for job in found]
    for job in merged:
        # Of a file the server judges: it knows which misspelt field was meant to be the command.
        if not job.get("command") and not args.file:
            raise Complaint(
                "There is no command to run.",
                hint="Give one after --, as in: runyard run -- python train.py",
            )
    if args.array:
        return [element for job in merged for element in _elements(job, args.array)]
    return merged


def _merged(job: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    merged = {**job, **given}
    for name in ("env_vars", "labels", "params", "distributed"):
        if isinstance(job.get(name), dict) and name in given:
            merged[name] = {**job[name], **given[name]}
    for name in ("services", "prefetch"):
        if isinstance(job.get(name), list) and name in given:
            merged[name] = [*job[name], *given[name]]
    folder = merged.get("working_dir")
    if folder is None and not merged.get("image"):
        merged["working_dir"] = _here()
    elif folder is not None and not merged.get("image"):
        merged["working_dir"] = os.path.abspath(os.path.expanduser(str(folder)))
    if not merged.get("image"):
        merged.setdefault(
            "base_env",
            {name: os.environ[name] for name in SENT_ENVIRONMENT if os.environ.get(name)},
        )
    return merged


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise Complaint(
            "This directory no longer exists.", hint="Choose one with --workdir."
        ) from None


def _from_flags(args: argparse.Namespace) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": args.name,
        "description": args.description,
        "working_dir": args.workdir,
        "image": args.image,
        "executor": args.executor,
        "output_path": os.path.abspath(args.output)
        if args.output and not args.image
        else args.output,
        "dataset_ids": args.dataset or None,
        "prefetch": list(args.prefetch) or None,
        "tty": args.tty or None,
        "isolation": args.isolation,
        "cpu_cores": args.cpus,
        "memory_gb": amounts.memory_gb(args.mem, "--mem") if args.mem else None,
        "priority": args.priority,
        "timeout_s": amounts.seconds(args.time, "--time") if args.time else None,
        "max_retries": args.retries,
        "grace_s": amounts.seconds(args.grace, "--grace") if args.grace else None,
        "lease_s": amounts.seconds(args.lease, "--lease") if args.lease else None,
        "hold": args.hold or None,
        "preflight": args.preflight,
        "ports": _ports(args),
        "services": _services(args.service) or None,
        "distributed": _distributed(args) or None,
        "env_vars": _environment(args) or None,
        "labels": _pairs(args.label, "--label") or None,
        "params": {name: _value(text) for name, text in _pairs(args.param, "--param").items()}
        or None,
        "depends_on": [_dependency(word) for word in args.after] or None,
        "command": _command(args.command_words),
    }
    if args.gpus is not None:
        kind, count = amounts.gpus(args.gpus, "--gpus")
        fields["gpu_count"], fields["gpu_type"] = count, kind
    if args.gpu_type:
        fields["gpu_type"] = args.gpu_type
        fields.setdefault("gpu_count", None)
    return {name: value for name, value in fields.items() if value is not None}


def _command(words: list[str]) -> str | list[str] | None:
    if len(words) == 1 and any(letter.isspace() for letter in words[0].strip()):
        return words[0]
    return list(words) or None


def _ports(args: argparse.Namespace) -> int | list[str] | None:
    if args.port and args.ports:
        raise Complaint("--port NAME and --ports cannot be used together.")
    if args.ports and args.ports.isdigit():
        return int(args.ports)
    return args.port or ([word for word in args.ports.split(",") if word] if args.ports else None)


def _distributed(args: argparse.Namespace) -> dict[str, Any]:
    asked = {
        "nodes": args.nodes,
        "procs_per_node": args.procs_per_node,
        "launcher": args.launcher,
        "placement": args.placement,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _services(words: list[str]) -> list[dict[str, str]]:
    found = []
    for word in words:
        name, equals, command = word.partition("=")
        if not equals or not name or not command.strip():
            raise Complaint(f"--service {word}: NAME=COMMAND is wanted.")
        found.append({"name": name, "command": command})
    return found


def _environment(args: argparse.Namespace) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in args.env_file:
        found.update(_environment_file(path))
    for word in args.env:
        name, equals, value = word.partition("=")
        if not equals:
            # As docker does: a bare name passes on what it is here.
            if name not in os.environ:
                raise Complaint(f"--env {name}: it is not set here; write {name}=VALUE.")
            value = os.environ[name]
        found[name] = value
    return found


def _environment_file(path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if not os.path.exists(path):
        raise Complaint(f"--env-file: there is no file {path}.")
    with open(path, encoding="utf-8") as lines:
        for count, raw in enumerate(lines, 1):
            line = raw.strip().removeprefix("export ").lstrip()
            if not line or line.startswith("#"):
                continue
            name, equals, value = line.partition("=")
            if not equals:
                raise Complaint(f"{path}, line {count}: NAME=VALUE is wanted.")
            value = value.strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            found[name.strip()] = value
    return found


def _pairs(words: list[str], flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Complaint(f"{flag} {word}: NAME=VALUE is wanted.")
        found[name] = value
    return found


def _value(text: str) -> Any:
    """A number or truth value where it is one, so that readers of RUNYARD_PARAMS get the type."""
    if text in ("true", "false"):
        return text == "true"
    # 007, 1_000 and nan are texts: JSON has no way to write them as numbers.
    if re.fullmatch(r"-?(0|[1-9]\d*)", text):
        return int(text)
    if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?", text) and not _leading_zero(text):
        return float(text)
    return text


def _leading_zero(text: str) -> bool:
    digits = text.lstrip("-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


def _dependency(word: str) -> str | dict[str, str]:
    job, colon, when = word.partition(":")
    if not colon:
        return job
    if when not in ("success", "end"):
        raise Complaint(f"--after {word}: it ends in :success or :end.")
    return {"job": job, "on": when}


def _elements(job: dict[str, Any], text: str) -> list[dict[str, Any]]:
    indexes, limit = amounts.array(text, "--array")
    array_id = f"array-{os.urandom(6).hex()}"
    elements = []
    for index in indexes:
        element = {**job, "array": {"array_id": array_id, "index": index, "limit": limit}}
        if job.get("name"):
            element["name"] = f"{job['name']}-{index}"
        elements.append(element)
    return elements
