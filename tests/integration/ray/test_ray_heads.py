"""Clusters of their own whose head or nodes fail: what Ray needs a minute for."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ray_cluster import RayCluster, has_ray, marked
from ray_yard import RayYard
from yards import Truth, alive, descendants, stat, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def own_cluster(tmp_path):
    if not has_ray():
        pytest.skip("Ray is not installed")
    made, yards = [], []

    def make(nodes=1, *, first=51, watched=True, **head_env):
        cluster = RayCluster(first=first, watched=watched, head_env=head_env)
        made.append(cluster)
        cluster.start(nodes)
        yard = RayYard(tmp_path / "yard", cluster, env={"RUNYARD_RECONCILE_INTERVAL": "5"})
        yards.append(yard)
        return cluster, yard.start()

    yield make
    for yard in yards:
        yard.stop()
    for cluster in made:
        cluster.stop()


def held(yard, truth, **fields):
    ref = yard.submit(f"exec 9>{truth.path}; echo up; exec sleep 900", **fields)
    until(lambda: "up" in yard.logs(ref), 60)
    return ref


def test_head_crash_no_storage(own_cluster, tmp_path):
    """Without storage everything ends cleanly, within about a minute, and is queued again."""
    cluster, yard = own_cluster()
    truth = Truth(tmp_path / "truth")
    ref = held(yard, truth, max_retries=2)
    head = cluster.nodes[cluster.head_address]
    os.kill(head.gcs, signal.SIGKILL)
    until(lambda: not truth.held(), 150)
    cluster.end_node(cluster.head_address)
    until(lambda: yard.status(ref) in ("running", "retrying", "pending", "scheduled"), 10)
    cluster.start_head()
    until(lambda: len(yard.attempts(ref)) == 2 and "up" in yard.logs(ref), 180)
    yard.cancel(ref)
    truth.close()


def test_head_crash_rocksdb(own_cluster, tmp_path):
    """With storage it is a pause: nothing dies, and the end of the job is known."""
    cluster, yard = own_cluster(
        watched=False,
        RAY_gcs_storage="rocksdb",
        RAY_gcs_storage_path=str(tmp_path / "gcs"),
        RAY_gcs_rpc_server_reconnect_timeout_s="600",
    )
    truth = Truth(tmp_path / "truth")
    ref = held(yard, truth, grace_s=1)
    head = cluster.nodes[cluster.head_address]
    pids = marked(f"{ref}.1")
    gcs = head.gcs
    argv = Path(f"/proc/{gcs}/cmdline").read_text().split("\0")[:-1]
    lines = Path(f"/proc/{gcs}/environ").read_text().split("\0")
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    os.kill(gcs, signal.SIGKILL)
    until(lambda: not alive(gcs), 60)
    again = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        assert marked(f"{ref}.1") == pids
        until(lambda: yard.cluster.all_gpus() > 0, 90)
        assert yard.cancel(ref, wait=60).body["status"] == "cancelled"
        assert not truth.held()
    finally:
        again.kill()
        again.wait()
        truth.close()


def test_raylet_frozen(own_cluster, tmp_path):
    """A node that says nothing is waited for until Ray calls it dead; then its job is tried again
    elsewhere, and when the node comes back nothing of the old attempt is left."""
    cluster, yard = own_cluster(2, first=61)
    other = cluster.nodes["127.0.0.62"]
    raylet = other.raylet
    extra = cluster.add_node(gpus=6)
    until(lambda: any(row["name"] == extra.address for row in yard.ask("/nodes")), 60)
    truth = Truth(tmp_path / "truth")
    ref = held(yard, truth, gpu_count=6)
    os.kill(extra.raylet, signal.SIGSTOP)
    try:
        job = yard.wait(ref, "failed", seconds=180)
        assert job["reason"]["code"] == "supervisor_lost"
    finally:
        os.kill(extra.raylet, signal.SIGCONT)
    until(lambda: not truth.held(), 60)
    assert other.raylet == raylet, "a node that works is left alone"
    truth.close()


def test_the_shim_stands_the_old_subreaper(own_cluster, tmp_path):
    """Ray's deprecated way to find orphans kills what is moved up to an actor: nothing is."""
    variable = "RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper"
    cluster, yard = own_cluster(first=71, **{variable: "true"})
    truth = Truth(tmp_path / "truth")
    ref = held(yard, truth)
    actor = cluster.actors()[f"job_{ref}_a1_n0"]
    children = [pid for pid in descendants(actor) if (stat(pid) or ("", 0))[1] == actor]
    assert len(children) == 1
    cluster.drive(f"kill('job_{ref}_a1_n0')")
    until(lambda: not truth.held(), 60)
    yard.wait(ref, "failed", seconds=60)
    truth.close()
