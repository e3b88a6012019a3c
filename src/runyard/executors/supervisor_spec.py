"""What a supervisor is told of an attempt: the first record of its journal."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from runyard.executors.base import Launch, SliceLaunch


def build(
    launch: Launch, *, slice_index: int = 0, gpu_locks: Iterable[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Of the whole attempt, or of one slice of it."""
    part = launch.slices[slice_index] if launch.slices else None
    return {
        "attempt_id": launch.attempt_id,
        "job_id": launch.job_ref,
        "token": secrets.token_hex(8),
        "tag": launch.tag,
        "argv": list(part.argv if part else launch.argv),
        "env": {**launch.env, **part.env} if part else dict(launch.env),
        "cwd": launch.cwd,
        "make_dirs": list(launch.make_dirs),
        "grace_s": launch.grace_s,
        "leftover_grace_s": launch.leftover_grace_s,
        "kill_timeout_s": launch.kill_timeout_s,
        "timeout_s": launch.timeout_s,
        "log_cap_bytes": launch.log_cap_bytes,
        "nice": launch.nice,
        "cpus": launch.cpus,
        "memory_limit_mb": launch.memory_limit_mb,
        "memory_soft": launch.memory_soft,
        "pids_limit": launch.pids_limit,
        "cgroup": launch.own_group,
        "tty": launch.tty,
        "isolation": launch.isolation,
        "gpu_locks": list(gpu_locks),
        "ports": list(launch.ports),
        "services": [asdict(service) for service in launch.services],
        **(_ranks(launch, part) if part else {}),
        **launch.extra,
    }


def _ranks(launch: Launch, part: SliceLaunch) -> dict[str, Any]:
    if not part.ranks:
        return {}
    return {
        "ranks": [
            {"rank": one.rank, "local_rank": one.local_rank, "env": dict(one.env)}
            for one in part.ranks
        ],
        "gang_grace_s": launch.gang_grace_s,
        "finish_skew_s": launch.finish_skew_s,
    }
