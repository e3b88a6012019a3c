"""The life of single jobs on a real Ray cluster, seen through a whole server."""

from __future__ import annotations

import sys
import time

from ray_cluster import marked
from ray_yard import holding
from yards import Truth, until


def test_a_job_runs_on_a_node_and_its_end_is_known(ray_yard):
    """R34: exit code, log, environment, receipt of a job on the cluster."""
    ref = ray_yard.submit("echo hello; echo gpus=$CUDA_VISIBLE_DEVICES; exit 3", gpu_count=1)
    job = ray_yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["params"]["code"] == 3
    lines = ray_yard.logs(ref)
    assert lines[0] == "hello"
    assert lines[1].removeprefix("gpus=").isdigit()
    [attempt] = ray_yard.attempts(ref)
    assert attempt["exit_code"] == 3
    assert attempt["gpus"]


def test_cpu_job_sees_no_gpu(ray_yard):
    ref = ray_yard.submit('echo "[${CUDA_VISIBLE_DEVICES-unset}]"')
    ray_yard.wait(ref, "completed", seconds=60)
    assert ray_yard.logs(ref) == ["[]"]


def test_the_environment_has_nothing_of_ray(ray_yard):
    """Tokens and addresses of the cluster are no business of training code."""
    ref = ray_yard.submit("env")
    ray_yard.wait(ref, "completed", seconds=60)
    assert not [line for line in ray_yard.logs(ref) if line.startswith("RAY_")]


def test_metrics_reach_the_server(ray_yard):
    program = (
        "import json, os, time\n"
        "file = open(os.environ['RUNYARD_METRICS_FILE'], 'a')\n"
        "for step in range(1, 6):\n"
        "    file.write(json.dumps({'step': step, 'loss': 1 / step}) + '\\n'); file.flush()\n"
        "    time.sleep(0.1)\n"
    )
    ref = ray_yard.submit([sys.executable, "-c", program])
    ray_yard.wait(ref, "completed", seconds=60)

    def points():
        series = ray_yard.ask(f"/jobs/{ref}/metrics?keys=loss")["series"]
        return series.get("loss", {}).get("steps") == [1, 2, 3, 4, 5]

    until(points)


def test_cancel_kills_tree_and_next_job_starts(make_ray_yard, tmp_path):
    """R51: what ignores SIGTERM and what hides in a session of its own is gone when the job is
    called cancelled, and the next one starts by itself."""
    yard = make_ray_yard(max_concurrent=1).start()
    truth = Truth(tmp_path / "truth")
    first = yard.submit(holding(truth), gpu_count=4, grace_s=0.5)
    until(lambda: "up" in yard.logs(first), 60)
    second = yard.submit("echo next", gpu_count=4)
    assert yard.status(second) == "pending"
    began = time.monotonic()
    assert yard.cancel(first).body["status"] == "cancelled"
    assert not truth.held()
    yard.wait(second, "completed", seconds=60)
    print(f"cancel to the end of the next job: {time.monotonic() - began:.1f} s")
    truth.close()


def test_a_command_that_is_not_there_fails_at_once(ray_yard):
    ref = ray_yard.submit(["/nowhere/program"])
    job = ray_yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "exec_failed"


def test_a_time_limit_holds(ray_yard):
    ref = ray_yard.submit("sleep 600", timeout_s=1, grace_s=1)
    job = ray_yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "timed_out"


def test_force_kill(ray_yard, tmp_path):
    truth = Truth(tmp_path / "truth")
    ref = ray_yard.submit(holding(truth), grace_s=600)
    until(lambda: "up" in ray_yard.logs(ref), 60)
    answer = ray_yard.api("POST", f"/jobs/{ref}/force-kill?wait=60", timeout=90)
    assert answer.ok, answer.data
    ray_yard.wait(ref, "cancelled")
    assert not truth.held()
    truth.close()


def test_server_kill9_job_runs_on_and_is_adopted(make_ray_yard, tmp_path):
    """R30: the end of a job that ended while no server ran is known, with its whole log."""
    yard = make_ray_yard().start()
    go = tmp_path / "go"
    short = yard.submit(f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two; exit 5")
    long = yard.submit("echo begun; exec sleep 600")
    until(lambda: "one" in yard.logs(short) and "begun" in yard.logs(long), 60)
    pids = marked(f"{long}.1")
    yard.kill9()
    go.touch()
    until(lambda: not marked(f"{short}.1"))
    assert marked(f"{long}.1") == pids
    yard.start()
    job = yard.wait(short, "failed", seconds=60)
    assert job["reason"]["params"]["code"] == 5
    assert yard.logs(short) == ["one", "two"]
    assert yard.status(long) == "running"
    assert marked(f"{long}.1") == pids
    assert yard.cancel(long).body["status"] == "cancelled"
    assert not marked(f"{long}.1")


def test_shutdown_with_stop_ends_jobs_and_leaves_the_cluster(make_ray_yard):
    """A Ray we did not start is never stopped."""
    yard = make_ray_yard().start()
    ref = yard.submit("echo up; exec sleep 600", grace_s=1)
    until(lambda: "up" in yard.logs(ref), 60)
    assert yard.terminate(60) == 0
    assert not marked(f"{ref}.1")
    assert yard.cluster.all_gpus() > 0
    yard.process = None


def test_shutdown_with_keep_leaves_the_job_running(make_ray_yard):
    yard = make_ray_yard("--on-shutdown", "keep").start()
    ref = yard.submit("echo up; exec sleep 600", grace_s=1)
    until(lambda: "up" in yard.logs(ref), 60)
    pids = marked(f"{ref}.1")
    assert yard.terminate(60) == 0
    assert marked(f"{ref}.1") == pids
    yard.start()
    until(lambda: yard.status(ref) == "running")
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert not marked(f"{ref}.1")


def test_the_nodes_of_the_cluster_are_listed(ray_yard):
    def listed():
        rows = [row for row in ray_yard.ask("/nodes") if row.get("kind") == "ray"]
        return rows if len(rows) == 3 else None

    rows = until(listed)
    assert {row["name"] for row in rows} == set(ray_yard.cluster.nodes)
