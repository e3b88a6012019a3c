"""The files of an attempt in a container, beside its journal: its plan, and what became of it.

The runner writes them; who comes after a runner that died finds the container by them, or by its
labels. Standard library only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

PLAN = "container.json"
STARTED = "container-started.json"
END = "container-end.json"
GONE = "container-gone.json"  # the engine has nothing of the attempt any more
MAIN_PID = "main.pid"  # as numbered inside

ATTEMPT_LABEL = "runyard.attempt"
SERVER_LABEL = "runyard.server"
JOB_LABEL = "runyard.job"


def write(folder: str, name: str, fields: Mapping[str, Any]) -> None:
    """Whole or not at all, also when we are killed."""
    draft = _draft(folder, name, fields)
    os.rename(draft, f"{folder}/{name}")


def write_once(folder: str, name: str, fields: Mapping[str, Any]) -> None:
    """The first who writes it is right; durable, because the container is removed next."""
    draft = _draft(folder, name, fields, sync=True)
    try:
        os.link(draft, f"{folder}/{name}")
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)


def read(folder: str, name: str) -> dict[str, Any] | None:
    try:
        with open(f"{folder}/{name}", "rb") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _draft(folder: str, name: str, fields: Mapping[str, Any], *, sync: bool = False) -> str:
    draft = f"{folder}/.{name}.{os.urandom(6).hex()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(json.dumps(fields).encode())
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    return draft
