"""The contract of the preflight program: the plan it reads, the report it writes, how it ends.

Whoever starts it writes a plan file, runs `command(plan_file)` and reads the report.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict

# Exit statuses. It fails only when it knows why: its own faults are not the job's.
PASSED, FAILED = 0, 20


class BadPlan(ValueError):
    """The plan file cannot be read."""


class Report(TypedDict):
    verdict: str  # pass, warn, fail
    seconds: float
    checks: list[dict[str, Any]]


@dataclass(frozen=True)
class Plan:
    """The job as it would be started, and what the server knows of it and of the machine."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    output_dir: str
    checkpoint_dir: str
    report_file: str
    ports: dict[str, int] = field(default_factory=dict)  # fixed ones, by the service's name
    wants_gpu: bool = False
    fetches_from_hub: bool = False
    interpreter_timeout_s: float = 20.0


def command(plan_file: str | os.PathLike[str]) -> list[str]:
    """The argv of the program: by file path, without site-packages, as that of the prefetch."""
    program = Path(__file__).resolve().with_name("__main__.py")
    return [sys.executable, "-I", "-S", str(program), os.fspath(plan_file)]


def write(plan: Plan, path: str | os.PathLike[str]) -> None:
    _write_private(path, asdict(plan))


def read(path: str | os.PathLike[str]) -> Plan:
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        return Plan(**{**fields, "argv": tuple(fields["argv"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadPlan(f"cannot read the plan: {error}") from error


def write_report(report: Report, path: str) -> None:
    part = f"{path}.part"
    _write_private(part, report)
    os.replace(part, path)


def read_report(path: str | os.PathLike[str]) -> Report | None:
    """None where there is none, or none that can be read."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None  # type: ignore[return-value]


def _write_private(path: str | os.PathLike[str], value: Any) -> None:
    # Only for us: the environment of a job may hold its tokens.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
