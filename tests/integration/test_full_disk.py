"""A disk that is full: nothing is accepted that cannot be kept, and nothing that was is lost."""

import sys

import pytest

from runyard.supervisor import journal
from small_disk import fill, small_disk
from yards import SMALL, RunningYard, until

pytestmark = pytest.mark.root


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", 24) as point:
        yield point


@pytest.fixture
def yard(disk, tmp_path):
    yard = RunningYard(tmp_path / "yard", data_dir=disk / "data").start()
    yield yard
    yard.stop()


def total(yard):
    return int(yard.api("GET", "/jobs?limit=1").headers["X-Total-Count"])


def test_submit_on_a_full_disk(yard, disk, tmp_path):
    """507 disk_full, nothing half-written, and all is well when there is room again."""
    go = tmp_path / "go"
    running = yard.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 6"])
    yard.wait(running, "running")
    fill(disk / "filler")
    # What the database still has room for in files of its own may be accepted, and is kept.
    accepted, refused = [], None
    for _ in range(3000):
        answer = yard.api("POST", "/jobs", {**SMALL, "command": ["true"], "hold": True})
        if answer.status != 201:
            refused = answer
            break
        accepted.append(answer.body["job_id"])
    assert refused is not None, "the disk never got full"
    assert (refused.status, refused.body["code"]) == (507, "disk_full")
    batch = {"jobs": [{**SMALL, "command": ["true"], "hold": True}] * 500}
    answer = yard.api("POST", "/jobs/batch", batch)
    assert (answer.status, answer.body["code"]) == (507, "disk_full")
    assert total(yard) == 1 + len(accepted)
    assert yard.call("GET", "/healthz").ok
    assert yard.status(running) == "running"
    go.touch()  # it ends while nothing can be written
    folder = str(yard.data / "attempts" / f"{running}.1")
    until(lambda: journal.read(folder).exit, words="the journal has room kept for its end")
    (disk / "filler").unlink()
    assert yard.wait(running, "failed")["attempt"]["exit_code"] == 6
    assert total(yard) == 1 + len(accepted)
    yard.wait(yard.submit(["true"]), "completed")


def test_disk_full_job_sees_enospc_supervisor_lives(yard, disk):
    """The job gets the error, its supervisor does not die of it, and the end is told."""
    script = "cat /dev/zero >filler 2>/dev/null; echo full >&2; exit 28"
    ref = yard.submit(["sh", "-c", script], output_path=str(disk / "out"))
    folder = yard.data / "attempts" / f"{ref}.1"
    record = until(
        lambda: (folder / "journal").exists() and journal.read(str(folder)).exit,
        words="an exit record on a full disk",
    )
    assert (record["code"], record["by"], record["proof"]) == (28, "supervisor", "echild")
    until(lambda: yard.call("GET", "/healthz").ok)
    (disk / "out" / "filler").unlink()
    assert yard.wait(ref, "failed")["attempt"]["exit_code"] == 28
    yard.wait(yard.submit(["true"]), "completed")


def test_started_on_a_full_disk(yard, disk):
    """It starts, or says why not; either way nothing is lost."""
    ref = yard.submit(["true"])
    yard.wait(ref, "completed")
    yard.kill9()
    fill(disk / "filler")
    yard.spawn()
    until(lambda: yard.process.poll() is not None or yard.up(), 60)
    if yard.process.poll() is None:
        assert yard.status(ref) == "completed"
        yard.kill9()
    else:
        assert yard.process.returncode == 1, yard.said()
        assert yard.said().strip().endswith("[disk_full]"), yard.said()
    (disk / "filler").unlink()
    yard.start()
    assert yard.status(ref) == "completed"
    yard.wait(yard.submit(["true"]), "completed")


SAVING = """
import os, re, time, zipfile
folder = os.environ["RUNYARD_CHECKPOINT_DIR"]
start = 0
if given := os.environ.get("RUNYARD_RESUME_FROM"):
    start = int(re.search(r"step_(\\d+)", given)[1])
print("begins after step", start, flush=True)
for step in range(start + 1, 4):
    with zipfile.ZipFile(f"{folder}/step_{step}.pt", "w") as file:
        file.writestr("m/data.pkl", b"x" * 20)
        file.writestr("m/data/0", os.urandom(5 << 20))
    print(f"step {step}/3 loss: {1 / step}", flush=True)
"""


def _waits_for_space(job):
    return job if (job["reason"] or {}).get("code") == "waiting_for_space" else None


def test_a_job_whose_disk_is_full_goes_on_when_there_is_room(disk, tmp_path):
    """R20: a real full disk; it waits, says what is free and what is wanted, and resumes."""
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * (16 << 20))
    folder = disk / "checkpoints"
    folder.mkdir()
    yard = RunningYard(tmp_path / "other").start()
    try:
        ref = yard.submit(
            [sys.executable, "-c", SAVING],
            max_retries=3,
            checkpoint={"dir": str(folder)},
            recovery={"disk_full": {"delays": [0.2]}},
        )
        waiting = until(
            lambda: _waits_for_space(yard.job(ref)),
            60,
            lambda: yard.job(ref),
        )
        told = waiting["reason"]["params"]
        assert told["path"].startswith(str(folder))
        assert told["free_bytes"] < told["wanted_bytes"]
        assert told["wanted_bytes"] > 5 << 20, "what a checkpoint took, and a little more"
        shown = yard.cli("explain", ref).stdout
        assert "No space left on device" in shown
        assert "waits for room on the disk" in shown
        yard.env["RUNYARD_LANG"] = "zh"
        assert "等待磁盘空间" in yard.cli("show", ref).stdout
        assert len(yard.attempts(ref)) == 1
        ballast.unlink()
        yard.wait(ref, "completed", seconds=60)
        assert len(yard.attempts(ref)) == 2
        assert yard.logs(ref)[0] == "begins after step 1"
    finally:
        yard.stop()
