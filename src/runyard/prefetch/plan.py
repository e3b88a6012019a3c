"""The contract of the prefetch program: the plan it reads, the progress it writes, how it ends.

Whoever starts it writes a plan file, runs `command(plan_file)` and reads the progress file; the
last progress carries the outcome, which is also the last line on standard output.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

# These never change their meaning; 1 is a fault of the program itself.
EXIT_STATUS = {
    "present": 0,
    "internal": 1,
    "bad_plan": 2,
    "not_found": 10,
    "auth": 11,
    "network": 12,
    "hash_mismatch": 13,
    "disk_full": 14,
    "bad_uri": 15,
    "quota": 16,
    "bad_answer": 17,
    "storage": 18,
}

_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.IGNORECASE)


class BadPlan(ValueError):
    """The plan file cannot be read or says something impossible."""


class Outcome(TypedDict, total=False):
    """How the program ended: `uri` and `params` where something failed, else `items`."""

    code: str
    uri: str | None
    params: dict[str, Any]
    items: list[dict[str, Any]]


class Progress(TypedDict):
    """What the progress file holds; rewritten whole, at most twice a second."""

    state: Literal["listing", "fetching", "waiting", "checking", "ended"]
    bytes_done: int
    bytes_total: int | None
    files_done: int
    files_total: int
    current: str | None
    rate_bps: float
    at: float
    outcome: Outcome | None


@dataclass(frozen=True)
class Item:
    """One thing to bring. `name` is what the job finds it by below the link directory.

    The hash of a single file is its sha256; that of a folder is the sha256 of the lines
    `<sha256 of the file>  <path>` of its files, sorted by path.
    """

    uri: str
    name: str | None = None
    hash: str | None = None


@dataclass(frozen=True)
class Plan:
    """What to bring, where to keep it and where to show it."""

    cache_dir: str
    link_dir: str
    items: tuple[Item, ...]
    progress_file: str
    quota_bytes: int | None = None
    parallel: int = 4
    tries: int = 8  # in a row without a new byte
    timeout_s: float = 30.0  # without a sign of the server
    backoff_s: float = 1.0  # before the second try; doubles


def command(plan_file: str | os.PathLike[str]) -> list[str]:
    """The argv of the program. By file path, without site-packages: it starts fast and nothing
    in the working directory can take the place of a module."""
    program = Path(__file__).resolve().with_name("__main__.py")
    return [sys.executable, "-I", "-S", str(program), os.fspath(plan_file)]


def write(plan: Plan, path: str | os.PathLike[str]) -> None:
    fields = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    fields["items"] = [
        {"uri": item.uri, "name": item.name, "hash": item.hash} for item in plan.items
    ]
    # Only for us: an address may hold a password.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(json.dumps(fields, indent=1) + "\n")


def read(path: str | os.PathLike[str]) -> Plan:
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadPlan(f"cannot read the plan: {error}") from error
    if not isinstance(fields, dict):
        raise BadPlan("the plan must be an object")
    items = fields.get("items")
    if not isinstance(items, list):
        raise BadPlan("items must be a list")
    return Plan(
        cache_dir=_absolute(fields, "cache_dir"),
        link_dir=_absolute(fields, "link_dir"),
        items=tuple(_item(item) for item in items),
        progress_file=_absolute(fields, "progress_file"),
        quota_bytes=_quota(fields.get("quota_bytes")),
        parallel=int(_positive(fields, "parallel", 4)),
        tries=int(_positive(fields, "tries", 8)),
        timeout_s=_positive(fields, "timeout_s", 30.0),
        backoff_s=_positive(fields, "backoff_s", 1.0),
    )


def read_progress(path: str | os.PathLike[str]) -> Progress | None:
    """What the progress file says, or None where there is none yet."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None  # type: ignore[return-value]


def _item(fields: Any) -> Item:
    if not isinstance(fields, dict) or not isinstance(fields.get("uri"), str):
        raise BadPlan("an item needs a uri")
    name, expected = fields.get("name"), fields.get("hash")
    if name is not None and not isinstance(name, str):
        raise BadPlan("a name must be a string")
    if expected is not None and (
        not isinstance(expected, str) or _HASH.fullmatch(expected) is None
    ):
        raise BadPlan("a hash must be sha256: and 64 hex digits")
    return Item(fields["uri"], name, expected.lower() if expected else None)


def _absolute(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not os.path.isabs(value) or "\0" in value:
        raise BadPlan(f"{name} must be an absolute path")
    return value


def _quota(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadPlan("quota_bytes must be a whole number or null")
    return value


def _positive(fields: dict[str, Any], name: str, default: float) -> float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise BadPlan(f"{name} must be above 0")
    return value
