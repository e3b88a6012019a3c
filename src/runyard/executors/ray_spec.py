"""What the ray-bridge is told of an attempt, and what its records say to the server."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.executors import supervisor_spec
from runyard.executors.base import Launch
from runyard.supervisor.stack_dump import Dump

SLICES = "slices"  # the folder of what belongs to single slices


def build(launch: Launch, folder: str, *, by_grant: bool) -> dict[str, Any]:
    """The first record of the attempt's journal here. `by_grant`: nobody else takes GPUs of the
    cluster, so that the attempt gets exactly those it was granted; else those that Ray gives."""
    count = max(1, len(launch.slices))
    return {
        "attempt_id": launch.attempt_id,
        "job_id": launch.job_ref,
        "tag": launch.tag,
        "run_dir": folder,
        "cpus_each": launch.cpu_milli / 1000,
        "gpus_each": launch.gpu_milli / 1000,
        "gpus_by": "grant" if by_grant else "ray",
        "leftover_grace_s": launch.leftover_grace_s,
        "gang_grace_s": launch.gang_grace_s,
        "finish_skew_s": launch.finish_skew_s,
        "slices": [_slice(launch, index) for index in range(count)],
    }


def _slice(launch: Launch, index: int) -> dict[str, Any]:
    part = launch.slices[index] if launch.slices else None
    uuids = part.gpu_ids if part is not None else launch.gpu_uuids
    return {
        "index": index,
        "node": part.node if part is not None else "",
        "gpu_ids": [uuid.rpartition("/")[2] for uuid in uuids],
        "ports": list(part.ports) if part is not None else [],
        "log_rank": part.log_rank if part is not None else 0,
        "spec": supervisor_spec.build(launch, slice_index=index),
    }


def ranks_first(dumps: Sequence[Dump]) -> list[Dump]:
    """Over all nodes, as on one machine."""
    return sorted(dumps, key=lambda one: (one.rank is None, one.rank or 0, one.slice_index or 0))


def why_own(said: str, chosen: str) -> str:
    """Of a Ray of our own that does not start, by what it said last."""
    if "No module named 'ray'" in said:
        return why("ray_not_installed", {"python": python(chosen)})
    return why("ray_failed", {"why": said.strip().rpartition("\n")[2]})


def why(code: str, params: Mapping[str, Any]) -> str:
    """A code and, behind it, what it is about."""
    if code == "ray_version_mismatch":
        ours = f"Ray {params['ray']}, Python {params['python']}"
        theirs = f"Ray {params['cluster_ray']}, Python {params['cluster_python']}"
        return f"{code}: {ours} / {theirs}"
    about = params.get("address") or params.get("found") or params.get("why") or ""
    return f"{code}: {params.get('python', about)}" if about or "python" in params else code


def python(given: str) -> str:
    return given or sys.executable
