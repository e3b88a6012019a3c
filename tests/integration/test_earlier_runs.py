"""What a job used is suggested when it is submitted again; what it wrote is listed (R39)."""

from __future__ import annotations

import sys
from datetime import datetime

import pytest

from yards import until

PROGRAM = """
import os, sys, time
block = bytearray(80_000_000)
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
"""


@pytest.fixture
def yard(make_yard):
    return make_yard(env={"RUNYARD_MONITORING_INTERVAL": "0.2"}).start()


def is_measured(yard, ref):
    use = yard.ask(f"/monitor/job/{ref}")["use"] or {}
    return (use.get("memory_gb") or 0) > 0.07


def test_the_same_job_again_is_told_what_it_used(yard, tmp_path):
    go = tmp_path / "go"
    body = {"command": [sys.executable, "-c", PROGRAM, str(go)], "name": "same", "gpu_count": 0}
    first = yard.api("POST", "/jobs", body).body
    assert first["suggestion"] is None
    until(lambda: is_measured(yard, first["job_id"]))
    go.touch()
    ended = yard.wait(first["job_id"], "completed")
    took = datetime.fromisoformat(ended["completed_at"]) - datetime.fromisoformat(
        ended["started_at"]
    )

    def suggested():
        return yard.api("POST", "/jobs", {**body, "hold": True}).body["suggestion"]

    found = until(suggested, words="no suggestion", every=0.2)
    assert found["from_job"] == first["job_id"]
    assert 0.1 <= found["memory_gb"] < 4
    assert found["gpu_memory_mb"] is None
    assert found["seconds"] == pytest.approx(took.total_seconds(), abs=2)
    # Held, so that none of them ends and becomes the newest of the earlier ones.
    flags = ("--name", "same", "--gpus", "0")
    said = yard.cli("submit", "--hold", *flags, "--", *body["command"])
    assert said.stdout.strip().startswith("job-")
    assert f"Earlier runs of this job ({first['job_id']}) used at most: " in said.stderr
    yard.env["RUNYARD_LANG"] = "zh"
    again = yard.cli("run", "-d", "--hold", *flags, "--", *body["command"])
    assert f"此作业以前的运行 ({first['job_id']}) 最多使用" in again.stderr
    followed = yard.cli("run", *flags, "--", *body["command"])
    assert f"此作业以前的运行 ({first['job_id']}) 最多使用" in followed.stderr
    quiet = yard.cli("submit", "-q", "--hold", *flags, "--", *body["command"])
    assert quiet.stderr == ""
    other = {**body, "name": "other", "hold": True}
    assert yard.api("POST", "/jobs", other).body["suggestion"] is None


def test_output_is_kept_and_listed(yard, tmp_path):
    command = 'mkdir "$RUNYARD_OUTPUT_DIR/a"; printf hello > "$RUNYARD_OUTPUT_DIR/a/b.txt"'
    command += '; ln -s /etc/passwd "$RUNYARD_OUTPUT_DIR/link"'
    out = tmp_path / "out"
    ref = yard.submit(command, output_path=str(out))
    yard.wait(ref, "completed", seconds=60)
    found = yard.api("GET", f"/jobs/{ref}/files").body
    assert (found["dir"], found["truncated"]) == (str(out), False)
    assert [(one["path"], one["size_bytes"]) for one in found["files"]] == [("a/b.txt", 5)]
    assert yard.api("GET", "/jobs/99999/files").status == 404
