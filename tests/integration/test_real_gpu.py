"""GPUs for real: only where there is an NVIDIA GPU and a python3 with torch (`make test-gpu`)."""

import contextlib
import json
import shutil
import subprocess
import sys
import time

import pytest

from yards import Truth, until

pytestmark = [pytest.mark.gpu, pytest.mark.serial]

TORCH_PYTHON = shutil.which("python3") or sys.executable
HOLD = """
import sys, time, torch
block = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
block.fill_(1); torch.cuda.synchronize()
print("holding", flush=True)
time.sleep(600)
"""
FORKED_WORKER = """
import os, sys, time, torch
fifo = os.open(sys.argv[2], os.O_WRONLY)
block = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
block.fill_(1); torch.cuda.synchronize()
if os.fork() == 0:
    os.setsid()
    os.write(fifo, b"worker\\n")
    time.sleep(600)
print("holding", flush=True)
time.sleep(600)
"""
DAEMON = """
import os, sys, time
fifo = os.open(sys.argv[2], os.O_WRONLY)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import torch
        block = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
        block.fill_(1); torch.cuda.synchronize()
        os.write(fifo, b"daemon\\n")
        time.sleep(600)
    os._exit(0)
os.wait()
print("main waits", flush=True)
time.sleep(600)
"""
SEEN = """
import json, os, torch
visible, count = os.environ["CUDA_VISIBLE_DEVICES"], torch.cuda.device_count()
print(json.dumps({"visible": visible, "count": count}))
"""


def used_mb():
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[0])


@contextlib.contextmanager
def timed(words):
    """For a person: how long it takes is the driver's business too."""
    began = time.monotonic()
    yield
    print(f"{words} back in {time.monotonic() - began:.2f} s")


@pytest.fixture
def gpu_yard(make_yard, tmp_path):
    return make_yard(env={"RUNYARD_GPU_LOCK_DIR": str(tmp_path / "locks")}).start()


def hold(yard, megabytes, **fields):
    fields = {"gpu_count": 1, "grace_s": 1, **fields}
    ref = yard.submit([TORCH_PYTHON, "-c", HOLD, str(megabytes)], **fields)
    return ref


def why(yard, ref):
    return (yard.job(ref)["reason"] or {}).get("code")


def holding(yard, ref):
    until(lambda: "holding" in yard.logs(ref), 90, lambda: yard.job(ref))


def test_a_job_sees_only_the_gpu_it_was_given(gpu_yard):
    """R33, R55: by UUID, so that no numbering can mislead; and none at all for a CPU job."""
    [gpu] = gpu_yard.ask("/gpus")
    ref = gpu_yard.submit([TORCH_PYTHON, "-c", SEEN], gpu_count=1)
    gpu_yard.wait(ref, "completed", seconds=90)
    assert json.loads(gpu_yard.logs(ref)[-1]) == {"visible": gpu["uuid"], "count": 1}
    ref = gpu_yard.submit([TORCH_PYTHON, "-c", SEEN], gpu_count=0)
    gpu_yard.wait(ref, "completed", seconds=90)
    assert json.loads(gpu_yard.logs(ref)[-1]) == {"visible": "", "count": 0}


def test_gpu_memory_back_after_cancel(gpu_yard):
    """R2, R44: the next job gets the GPU only when the memory of the last one is back."""
    before = used_mb()
    first = hold(gpu_yard, 20_000)
    holding(gpu_yard, first)
    assert used_mb() > before + 19_000
    second = hold(gpu_yard, 100)
    until(lambda: gpu_yard.job(second)["reason"]["params"].get("resource") == "gpu")
    with timed("20 GB"):
        assert gpu_yard.cancel(first).body["status"] == "cancelled"
    receipt = gpu_yard.ask(f"/jobs/{first}/receipt")
    [gpu] = receipt["gpus"]
    # Before and after the end, not before and after the job.
    assert gpu["memory_before_mb"] > before + 19_000
    assert gpu["memory_after_mb"] <= before + 256
    holding(gpu_yard, second)
    assert used_mb() < before + 10_000
    gpu_yard.cancel(second)
    until(lambda: used_mb() <= before + 256, 30, used_mb)


def test_gpu_memory_back_after_server_kill9_and_cancel(gpu_yard):
    """R44: killed, started again, then cancelled: the GPU is free."""
    before = used_mb()
    ref = hold(gpu_yard, 10_000)
    holding(gpu_yard, ref)
    gpu_yard.kill9()
    gpu_yard.start()
    assert gpu_yard.status(ref) == "running"
    with timed("10 GB after a restart"):
        assert gpu_yard.cancel(ref).body["status"] == "cancelled"
        assert used_mb() <= before + 256


def test_gpu_forked_loader_worker_killed(gpu_yard, tmp_path):
    """R2: a forked worker that never used CUDA keeps a dead parent's memory; it goes too."""
    before = used_mb()
    truth = Truth(tmp_path / "truth")
    command = [TORCH_PYTHON, "-c", FORKED_WORKER, "8000", str(truth.path)]
    ref = gpu_yard.submit(command, gpu_count=1, grace_s=1)
    until(lambda: truth.held() and b"worker" in truth.data, 90)
    with timed("8 GB of a forked worker"):
        assert gpu_yard.cancel(ref).body["status"] == "cancelled"
        assert not truth.held()
        assert used_mb() <= before + 256


def test_gpu_daemonised_grandchild_killed(gpu_yard, tmp_path):
    """R2, R43: a CUDA process that left its session and its parents goes with its job."""
    before = used_mb()
    truth = Truth(tmp_path / "truth")
    command = [TORCH_PYTHON, "-c", DAEMON, "30000", str(truth.path)]
    ref = gpu_yard.submit(command, gpu_count=1, grace_s=1)
    until(lambda: truth.held() and b"daemon" in truth.data, 90)
    assert used_mb() > before + 29_000
    with timed("30 GB of a daemonised grandchild"):
        assert gpu_yard.cancel(ref).body["status"] == "cancelled"
        assert not truth.held()
        assert used_mb() <= before + 256


def test_gpu_not_released_to_next_job_while_held(gpu_yard):
    """R2: the job is gone, but a process that is not ours uses its GPU by then: nobody gets it.
    Memory without a process cannot be made here; test_gpu_return.py shows it with a probe."""
    first = hold(gpu_yard, 4000)
    holding(gpu_yard, first)
    stranger = subprocess.Popen(
        [TORCH_PYTHON, "-c", HOLD, "3000"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert stranger.stdout.readline() == "holding\n"
        second = hold(gpu_yard, 100)
        gpu_yard.api("POST", f"/jobs/{first}/force-kill")
        gpu_yard.wait(first, "cancelled", seconds=60)
        until(lambda: why(gpu_yard, second) in ("gpus_held_elsewhere", "not_enough"), 30)
        assert gpu_yard.status(second) == "pending"
    finally:
        stranger.kill()
        stranger.wait()
        stranger.stdout.close()
    holding(gpu_yard, second)
    gpu_yard.cancel(second)


def test_a_gpu_used_by_somebody_else_is_left_alone(gpu_yard):
    """R33: the job waits and names who has it; it starts when they are gone."""
    stranger = subprocess.Popen(
        [TORCH_PYTHON, "-c", HOLD, "500"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert stranger.stdout.readline().strip() == "holding"
        until(lambda: gpu_yard.ask("/gpus")[0]["holders"], 30)
        ref = gpu_yard.submit([TORCH_PYTHON, "-c", SEEN], gpu_count=1)
        job = until(
            lambda: (job := gpu_yard.job(ref))["reason"]["code"] == "gpus_held_elsewhere" and job
        )
        assert str(stranger.pid) in json.dumps(job["reason"]["params"])
    finally:
        stranger.kill()
        stranger.wait()
        stranger.stdout.close()
    gpu_yard.wait(ref, "completed", seconds=90)


def test_two_servers_of_two_people_never_share_a_gpu(make_yard, tmp_path):
    """R55: each has its own data directory; the lock of the GPU is what they have in common."""
    env = {"RUNYARD_GPU_LOCK_DIR": str(tmp_path / "locks")}
    mine, theirs = make_yard(env=env).start(), make_yard(env=env).start()
    first = hold(mine, 100)
    holding(mine, first)
    second = hold(theirs, 100)
    until(lambda: why(theirs, second) == "gpus_held_elsewhere", 30, lambda: theirs.job(second))
    mine.cancel(first)
    holding(theirs, second)
    theirs.cancel(second)


def test_one_gpu_shared_by_fractions(gpu_yard):
    """R26: two halves run together, a third part waits."""
    halves = [hold(gpu_yard, 100, gpu_count=0.5) for _ in range(2)]
    for ref in halves:
        holding(gpu_yard, ref)
    third = hold(gpu_yard, 100, gpu_count=0.25)
    until(lambda: gpu_yard.job(third)["reason"]["params"].get("resource") == "gpu")
    gpu_yard.cancel(halves[0])
    holding(gpu_yard, third)
    for ref in (halves[1], third):
        gpu_yard.cancel(ref)
