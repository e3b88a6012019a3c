"""Ending what the engine still has of an attempt whose runner is gone, and recording it.

Used by the server when a runner or supervisor was killed before it could do so itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from runyard.executors import docker_files
from runyard.executors.docker_containers import Containers, EngineUnreachable, Found
from runyard.executors.docker_ends import KILLED
from runyard.executors.docker_runner import docker_end_of


def gone(folder: str) -> bool:
    return os.path.exists(f"{folder}/{docker_files.GONE}")


def settle(containers: Containers, folder: str, found: Sequence[Found]) -> None:
    """Returns when the engine has nothing of the attempt any more and both records are written.
    EngineUnreachable, TimeoutError."""
    plan = docker_files.read(folder, docker_files.PLAN) or {}
    for one in found:
        is_main = one.name == plan.get("name")
        fields = _ended(containers, one)
        if is_main and fields is not None:
            docker_files.write_once(folder, docker_files.END, fields)
        containers.remove(one.container_id)
    docker_files.write_once(folder, docker_files.END, {"code": None})
    docker_files.write(folder, docker_files.GONE, {"by": "server"})


def _ended(containers: Containers, one: Found) -> dict[str, Any] | None:
    """End it; its own code only where it had ended by itself."""
    seen = containers.inspect(one.container_id)
    if seen is None:
        return None
    if seen["State"]["Running"] or seen["State"].get("Paused"):
        began = time.time()
        seen = containers.kill(one.container_id)
        fields = docker_end_of(seen)
        return {**fields, "code": None, "oom_killed": False, "killed_at": began}
    fields = docker_end_of(seen)
    if fields["code"] == KILLED and not fields["oom_killed"]:
        fields["code"] = None  # most likely by whoever swept up after the dead supervisor
    return fields


def stuck(why: Exception, found: Sequence[Found]) -> tuple[dict[str, Any], ...]:
    """What keeps the end from being told, in the shape of processes that cannot be killed."""
    where = why.why if isinstance(why, EngineUnreachable) else "does_not_die"
    names = [one.name for one in found] or ["container"]
    return tuple(
        {"pid": None, "name": name, "state": "container", "where": where, "user": ""}
        for name in names
    )
