"""GPU memory on nodes of Ray: read there, proven back before anybody else gets the GPU (R2)."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from scripted_gpus import ScriptedGpus
from yards import until

GPUS = 5  # more than the other nodes have, so that a job for all of them runs nowhere else
IDLE = dict.fromkeys((f"gpu{index}" for index in range(GPUS)), 10)
BUSY = IDLE | {"gpu0": 5000, "gpu3": 7000}


@pytest.fixture
def machine(ray_yard, tmp_path):
    """A node with GPUs that hold what a test says."""
    made = ScriptedGpus(tmp_path / "machine", GPUS)
    node = ray_yard.cluster.add_node(gpus=GPUS, PATH=made.path)
    try:
        until(lambda: known(ray_yard, made), 120)
        yield made
    finally:
        made.use(**IDLE)
        for row in ray_yard.ask("/jobs?limit=50&status=running,cancelling,pending,scheduled"):
            ray_yard.api("POST", f"/jobs/{row['job_id']}/force-kill")
            ray_yard.wait(row["job_id"], "cancelled", seconds=120)
        ray_yard.cluster.end_node(node.address)


def known(yard, machine: ScriptedGpus) -> bool:
    """Its node has told of them."""
    uuids = {gpu["uuid"] for gpu in yard.ask("/gpus")}
    return {machine.uuid(index) for index in range(GPUS)} <= uuids


def held_alerts(yard, ref: str) -> list[dict]:
    alerts = [one for one in yard.ask("/alerts") if one["code"] == "gpu_memory_held"]
    return [one for one in alerts if one["job_id"] == ref]


def running(yard) -> str:
    ref = yard.submit("echo up; exec sleep 600", gpu_count=GPUS, grace_s=1, max_retries=0)
    until(lambda: "up" in yard.logs(ref), 120)
    return ref


def test_a_gpu_goes_to_the_next_job_when_its_memory_is_back(ray_yard, machine):
    """The receipt tells both; until then the job says what it waits for."""
    ref = running(ray_yard)
    following = ray_yard.submit("true", gpu_count=GPUS)
    machine.use(**BUSY)
    ray_yard.cancel(ref, wait=0)

    def waits() -> bool:
        reason = ray_yard.job(ref)["reason"]
        return reason["code"] == "waiting_for_gpu_memory" and reason["params"]["gpus"] == [0, 3]

    until(waits, 120, lambda: ray_yard.job(ref)["reason"])
    assert ray_yard.job(ref)["status"] == "cancelling"
    assert ray_yard.status(following) == "pending"
    machine.use(**IDLE)
    ray_yard.wait(ref, "cancelled", seconds=120)
    receipt = ray_yard.ask(f"/jobs/{ref}/receipt")
    before = {gpu["index"]: gpu["memory_before_mb"] for gpu in receipt["gpus"]}
    assert before == {0: 5000, 1: 10, 2: 10, 3: 7000, 4: 10}
    assert {gpu["memory_after_mb"] for gpu in receipt["gpus"]} == {10}
    ray_yard.wait(following, "completed", seconds=120)


def test_memory_that_an_actor_left_is_waited_for_too(ray_yard, machine):
    """R51: another one takes its place, and knows what was used before the job."""
    ref = running(ray_yard)
    machine.use(**BUSY)
    os.kill(ray_yard.cluster.actors()[f"job_{ref}_a1_n0"], signal.SIGKILL)
    [alert] = until(lambda: held_alerts(ray_yard, ref), 120)
    assert [gpu["index"] for gpu in alert["params"]["gpus"]] == [0, 3]
    assert ray_yard.status(ref) == "running"
    machine.use(**IDLE)
    job = ray_yard.wait(ref, "failed", seconds=120)
    assert job["reason"]["code"] == "supervisor_lost"
    receipt = ray_yard.ask(f"/jobs/{ref}/receipt")
    assert {gpu["memory_after_mb"] for gpu in receipt["gpus"]} == {10}
    until(lambda: held_alerts(ray_yard, ref)[0]["status"] == "closed", 60)


def test_nodes_that_cannot_read_their_gpus_say_so(ray_yard):
    """As those of the other tests, whose GPUs are only counted: nothing is claimed of them."""
    ref = ray_yard.submit("true", gpu_count=2)
    ray_yard.wait(ref, "completed", seconds=120)
    receipt = ray_yard.ask(f"/jobs/{ref}/receipt")
    told = [gpu.get("memory_after_mb") is not None for gpu in receipt["gpus"]]
    assert told == [shutil.which("nvidia-smi") is not None] * 2
