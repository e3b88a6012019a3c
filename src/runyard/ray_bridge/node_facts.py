"""What a node says of itself that Ray does not tell.

This module travels to the nodes by value: it uses the standard library, Ray
and what travels with it, nothing else of ours.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

from runyard.ray_bridge.node_process import age_s

_QUERY = "--query-gpu=index,uuid,name,memory.total"


def of_node(node_id: str, seconds: float) -> dict[str, Any]:
    import ray
    from ray import cloudpickle
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from runyard.ray_bridge import node_facts, node_process

    cloudpickle.register_pickle_by_value(node_facts)
    cloudpickle.register_pickle_by_value(node_process)
    strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
    # Its process ends with it: none that has run a task is ever given to an actor.
    once = ray.remote(num_cpus=0, max_retries=0, max_calls=1)(facts)
    told = once.options(scheduling_strategy=strategy)
    answer: dict[str, Any] = ray.get(told.remote(), timeout=seconds)
    return answer


def facts() -> dict[str, Any]:
    """Run on the node, in a process of its own below the raylet."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = file.read().strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "age_s": age_s(),
        "boot_id": boot_id,
        "memory_mb": memory >> 20,
        "gpu_ids": _visible(os.getppid()),
        "gpus": _gpus(),
    }


def _visible(raylet: int) -> list[str]:
    """The GPUs the node was started with, as the raylet's environment names them; Ray hands out
    these and tells only how many there are."""
    try:
        with open(f"/proc/{raylet}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return []
    for variable in variables:
        name, _, value = variable.partition(b"=")
        if name == b"CUDA_VISIBLE_DEVICES":
            return [one.strip() for one in value.decode().split(",") if one.strip()]
    return []


def _gpus() -> dict[str, dict[str, Any]]:
    try:
        done = subprocess.run(
            ["nvidia-smi", _QUERY, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    found = {}
    for line in done.stdout.splitlines():
        index, uuid, name, memory = (part.strip() for part in line.split(",", 3))
        found[index] = {"uuid": uuid, "name": name, "memory_mb": int(float(memory))}
    return found
