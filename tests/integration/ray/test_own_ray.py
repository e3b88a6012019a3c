"""A server that starts a Ray of its own and ends it; one that keeps it, and finds it again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from ray_cluster import end_session, has_ray, marked, session_members
from yards import RunningYard, alive, until


class OwnRayYard(RunningYard):
    def __init__(self, folder, *flags, **options):
        super().__init__(folder, "--executor", "ray", *flags, **options)

    @property
    def record(self):
        try:
            return json.loads((self.data / "ray" / "own.json").read_text())
        except FileNotFoundError:
            return None

    def ready(self):
        self.start(120)
        until(lambda: [row for row in self.ask("/nodes") if row.get("kind") == "ray"], 120)
        return self


@pytest.fixture
def make_own(tmp_path):
    if not has_ray():
        pytest.skip("Ray is not installed")
    made = []

    def make(*flags, **options):
        made.append(OwnRayYard(tmp_path / f"yard{len(made)}", *flags, **options))
        return made[-1]

    yield make
    for yard in made:
        record = yard.record
        yard.stop()
        if record is not None:  # of a server that was killed or told to keep it
            end_session(record["leader"]["pid"])


def test_sigterm_scheduler_leaves_no_ray_process(make_own):
    """R55: the server, its jobs and its Ray are gone; the pool is what --gpus says."""
    yard = make_own("--gpus", "2,3").ready()
    record = yard.record
    leader = record["leader"]["pid"]
    assert os.stat(yard.data / "ray" / "token").st_mode & 0o777 == 0o600
    ref = yard.submit("echo gpus=$CUDA_VISIBLE_DEVICES; sleep 600", gpu_count=2, grace_s=1)
    until(lambda: yard.logs(ref) == ["gpus=2,3"], 60, lambda: yard.job(ref))
    members = session_members(leader)
    assert len(members) > 3
    assert yard.terminate(60) == 0
    assert not [pid for pid in members if alive(pid)]
    assert not session_members(leader)
    assert not marked(f"{ref}.1")
    assert not Path(record["temp_dir"]).exists()
    assert yard.record is None
    yard.process = None


def test_keep_leaves_ray_and_job_and_finds_both(make_own):
    """R55: an upgrade of the server costs a job nothing."""
    yard = make_own("--on-shutdown", "keep").ready()
    leader = yard.record["leader"]["pid"]
    ref = yard.submit("echo up; exec sleep 600", grace_s=1)
    until(lambda: "up" in yard.logs(ref), 60)
    pids = marked(f"{ref}.1")
    assert yard.terminate(60) == 0
    assert alive(leader)
    assert marked(f"{ref}.1") == pids
    yard.ready()
    assert yard.record["leader"]["pid"] == leader
    until(lambda: yard.status(ref) == "running", 30)
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert not marked(f"{ref}.1")


def test_server_kill9_own_ray_is_found_again(make_own):
    yard = make_own().ready()
    leader = yard.record["leader"]["pid"]
    yard.kill9()
    assert alive(leader)
    yard.ready()
    assert yard.record["leader"]["pid"] == leader
    ref = yard.submit("echo still")
    yard.wait(ref, "completed", seconds=60)


def test_available_gpus_subset(make_own):
    """Of a pool of two GPUs each of two jobs gets one of its own, by the numbers of the pool."""
    yard = make_own("--gpus", "2,3").ready()
    refs = [yard.submit("echo $CUDA_VISIBLE_DEVICES; sleep 600", gpu_count=1) for _ in range(2)]
    until(lambda: all(yard.logs(ref) for ref in refs), 60)
    assert {yard.logs(ref)[0] for ref in refs} == {"2", "3"}
    third = yard.submit("true", gpu_count=1)
    until(lambda: (yard.job(third)["wait"] or {}).get("code"), 30)
    assert yard.status(third) == "pending"
    for ref in refs:
        yard.api("POST", f"/jobs/{ref}/force-kill")
    yard.wait(third, "completed", seconds=60)


def test_own_ray_that_dies_is_started_again(make_own):
    """R55: its head is killed; the job is lost, a new Ray comes, and the job runs again."""
    # Whoever has lost a head looks for it for a minute, unless told otherwise.
    soon = {"RUNYARD_RECONCILE_INTERVAL": "2", "RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
    yard = make_own(env=soon).ready()
    leader = yard.record["leader"]["pid"]
    marker = yard.folder / "again"
    script = f"if [ -e {marker} ]; then exit 0; fi; touch {marker}; echo up; exec sleep 600"
    ref = yard.submit(script, max_retries=2, grace_s=1)
    until(lambda: "up" in yard.logs(ref), 60)
    for pid in session_members(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    yard.wait(ref, "completed", seconds=200)
    assert yard.record["leader"]["pid"] != leader
    first, *_, last = yard.attempts(ref)
    assert (first["end"], last["end"]) == ("lost", "completed")
