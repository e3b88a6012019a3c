"""Failed jobs repair themselves, or say why they cannot; real servers and processes (R18-R22)."""

import os
import signal
import sys
from pathlib import Path

import pytest

import runyard
from runyard.supervisor import cgroup
from yards import until

PROGRAM = Path(__file__).parents[1] / "repairable_program.py"


@pytest.fixture
def history(tmp_path):
    return tmp_path / "history"


def train(yard, history, *flags, **fields):
    command = [sys.executable, str(PROGRAM), "--history", str(history), *map(str, flags)]
    return yard.submit(command, **{"max_retries": 3, **fields})


def starts(history):
    return [
        tuple(float(word) for word in line.split()) for line in history.read_text().splitlines()
    ]


def test_an_out_of_memory_repairs_itself(yard, history):
    """R18, R19, R20: 32 -> 16 -> 8 with the effective batch kept, resumed where it was."""
    flags = ("--batch_size", 32, "--gradient_accumulation_steps", 1, "--fits", 8)
    job = train(yard, history, *flags)
    yard.wait(job, "completed", seconds=60)
    ran = starts(history)
    assert [(batch, times) for batch, times, _, _ in ran] == [(32, 1), (16, 2), (8, 4)]
    assert [first for *_, first in ran] == [0, 10, 10]
    first, second, third = yard.attempts(job)
    assert first["diagnosis"]["failure_type"] == "out_of_memory"
    assert first["diagnosis"]["category"] == "gpu_oom"
    assert "Tried to allocate 2.50 GiB" in first["diagnosis"]["root"]["text"]
    line = yard.logs(job, attempt=1)[first["diagnosis"]["root"]["number"] - 1]
    assert line.startswith("torch.OutOfMemoryError")
    assert (first["changes"], first["plan"]["strategy"]) == ([], "reduce_batch_size")
    shown = {(one["name"], one["before"], one["after"]) for one in second["changes"]}
    assert shown == {("--batch_size", "32", "16"), ("--gradient_accumulation_steps", "1", "2")}
    assert third["diagnosis"] is None
    told = yard.ask(f"/jobs/{job}/explain")
    assert told["next"]["code"] == "repaired"
    assert {one["name"]: one["after"] for one in told["changes"]}["--batch_size"] == "8"
    screen = yard.cli("explain", job).stdout
    assert "CUDA out of memory" in screen
    assert "--batch_size 32 -> 16" in screen
    assert len(screen.splitlines()) < 40


@pytest.mark.parametrize("asks", ["report", "environment"])
def test_a_program_that_asks_for_its_scale_gets_smaller_ones_until_it_fits(yard, history, asks):
    """R20: 1, 0.5, 0.25, with nothing in the command that could be changed."""
    job = train(yard, history, "--asks", asks, "--fits", 8)
    yard.wait(job, "completed", seconds=60)
    assert [batch for batch, *_ in starts(history)] == [32, 16, 8]
    assert [first for *_, first in starts(history)] == [0, 10, 10]
    told = [one["plan"]["reason"] for one in yard.attempts(job)[:2]]
    assert [one["code"] for one in told] == ["batch_scale_reduced"] * 2
    assert [one["params"]["scale"] for one in told] == [0.5, 0.25]


def test_a_loss_that_is_no_number_goes_back_and_on_with_a_lower_rate(yard, history):
    """R18, R19, R20: to a checkpoint from before the first bad step."""
    job = train(yard, history, "--learning_rate", 0.1, "--diverges_above", 0.06)
    yard.wait(job, "completed", seconds=60)
    assert [(rate, first) for *_, rate, first in starts(history)] == [(0.1, 0), (0.05, 10)]
    first = yard.attempts(job)[0]
    assert first["diagnosis"]["failure_type"] == "training_divergence"
    assert first["diagnosis"]["facts"]["bad_step"] == 13
    assert first["plan"]["strategy"] == "restart_from_checkpoint"
    screen = yard.cli("explain", job).stdout
    assert "step-000010.pt (step 10)" in screen


def test_an_import_that_fails_is_not_tried_again(yard):
    """R18: it says which module, and uses no retry."""
    job = yard.submit([sys.executable, "-c", "import not_a_module_of_ours"], max_retries=3)
    ended = yard.wait(job, "failed")
    assert ended["reason"]["code"] == "not_retryable"
    assert ended["reason"]["params"]["failure_type"] == "environment"
    assert ended["diagnosis"]["facts"]["module"] == "not_a_module_of_ours"
    assert ended["retry_count"] == 0
    assert "not_a_module_of_ours" in yard.cli("explain", job).stdout
    refused = yard.api("POST", f"/recovery/attempt/{job}")
    assert (refused.status, refused.body["params"]["reason"]["code"]) == (409, "not_retryable")


def test_a_kill_by_somebody_is_told_from_an_out_of_memory(make_yard, tmp_path):
    """R18: the one is nobody's plan; the other is memory, with numbers."""
    yard = make_yard(env={"RUNYARD_ENFORCE_MEMORY": "always", "RUNYARD_CGROUPS": "off"}).start()
    pid_file = tmp_path / "pid"
    script = (
        "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    )
    killed = yard.submit([sys.executable, "-c", script, str(pid_file)], memory_gb=1)
    until(lambda: pid_file.exists() and pid_file.read_text())
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    ended = yard.wait(killed, "failed")
    assert ended["diagnosis"]["category"] == "unknown_kill"
    assert ended["diagnosis"]["failure_type"] == "killed_externally"
    script = "import time; kept = b'x' * (300 << 20); time.sleep(600)"
    large = yard.submit([sys.executable, "-c", script], memory_gb=0.1)
    ended = yard.wait(large, "failed", seconds=60)
    assert ended["diagnosis"]["failure_type"] == "out_of_memory"
    assert ended["diagnosis"]["category"] == "host_oom"
    assert ended["diagnosis"]["facts"]["limit_mb"] in (102, 103)


@pytest.mark.skipif("memory" not in cgroup.find(), reason="no memory group can be made here")
def test_a_kill_by_the_kernel_is_told_from_one_by_a_person(make_yard, tmp_path):
    """R18: the same signal 9, and explain names the memory with its limit for the one, and for the
    other that nobody here sent it."""
    yard = make_yard(env={"RUNYARD_ENFORCE_MEMORY": "cgroup"}).start()
    pid_file = tmp_path / "pid"
    grow = "kept = []\nwhile True: kept.append(bytearray(2 << 20))"
    by_kernel = yard.submit([sys.executable, "-c", grow], memory_gb=0.0625)
    wait = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    by_person = yard.submit([sys.executable, "-c", wait, str(pid_file)], memory_gb=0.0625)
    until(lambda: pid_file.exists() and pid_file.read_text())
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    for ref in (by_kernel, by_person):
        yard.wait(ref, "failed", seconds=60)
        [attempt] = yard.attempts(ref)
        assert (attempt["exit_code"], attempt["signal"]) == (None, 9)
    found = {ref: yard.ask(f"/jobs/{ref}/explain") for ref in (by_kernel, by_person)}
    memory = found[by_kernel]["diagnosis"]
    assert (memory["category"], memory["confidence"]) == ("host_oom", 1.0)
    assert memory["facts"]["oom_kills"] >= 1
    assert memory["facts"]["limit_mb"] == 64
    person = found[by_person]["diagnosis"]
    assert (person["category"], person["failure_type"]) == ("unknown_kill", "killed_externally")
    shown = yard.cli("explain", by_kernel).stdout
    assert "64" in shown
    assert "memory" in shown
    other = yard.cli("explain", by_person).stdout
    assert "memory had not run out" in other


def test_a_full_disk_waits_for_space(yard, history):
    """R18, R20: and goes on from its checkpoint; the job's own recovery says how long."""
    text = "OSError: [Errno 28] No space left on device: '/data/model.bin'"
    wanted = {"disk_full": {"delays": [0.5]}}
    job = train(yard, history, "--fails_once", text, recovery=wanted)
    yard.wait(job, "completed", seconds=60)
    [first, _] = yard.attempts(job)
    assert first["diagnosis"]["failure_type"] == "disk_full"
    assert first["plan"]["strategy"] == "wait_for_space"
    assert first["plan"]["wait_for"]["path"] == "/data/model.bin"
    assert first["plan"]["delay_s"] >= 0.5
    assert [begin for *_, begin in starts(history)] == [0, 10]
    assert yard.job(job)["charged"] == 0


def test_what_nobody_knows_is_retried_as_the_job_says(yard, history):
    """R21: max_retries with retry_delays, counted."""
    job = train(yard, history, "--fails_once", "OddError: never heard of it")
    ended = yard.wait(job, "completed", seconds=60)
    assert (ended["retry_count"], ended["charged"]) == (1, 1)
    assert yard.attempts(job)[0]["diagnosis"]["category"] == "unknown"


def test_a_person_asks_why_and_for_a_recovery(yard, history):
    """R22: analysis and dry run change nothing; the attempt runs by the plan."""
    flags = ("--batch_size", 16, "--gradient_accumulation_steps", 1, "--fits", 8)
    job = train(yard, history, *flags, max_retries=0)
    assert yard.wait(job, "failed")["reason"]["code"] == "exit_code"
    found = yard.api("POST", f"/recovery/analyze/{job}").body
    assert found["failure_type"] == "out_of_memory"
    assert found["plan"]["strategy"] == "reduce_batch_size"
    dry = yard.api("POST", f"/recovery/attempt/{job}?dry_run=true")
    assert dry.body["changes"] == found["changes"]
    assert yard.status(job) == "failed"
    client = runyard.Client(yard.url, yard.key)
    assert (
        client.attempt_recovery(job, dry_run=True)["plan"] == client.analyze_failure(job)["plan"]
    )
    assert client.attempt_recovery(job)["status"] == "pending"
    yard.wait(job, "completed", seconds=60)
    assert [batch for batch, *_ in starts(history)] == [16, 8]
    assert yard.api("POST", f"/recovery/attempt/{job}").status == 409
    assert yard.api("POST", "/recovery/analyze/job-none").status == 404
    running = yard.submit(["sleep", "600"])
    yard.wait(running, "running")
    assert yard.api("POST", f"/recovery/analyze/{running}").status == 409


HANGS = """
import os, threading, time
from runyard import report
# As torch's flight recorder leaves it when a collective hangs.
with open(os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] + "0", "wb") as file:
    file.write(b"trace of rank 0")
def wedged_in_a_collective():
    threading.Event().wait()
for step in range(6):
    report(step=step, total=1000, loss=2.0 - step / 100)
    time.sleep(0.3)
wedged_in_a_collective()
"""


def test_a_training_that_hangs_is_diagnosed_with_its_stack(make_yard, tmp_path):
    """R15, R18: stopped because of a stall, it is told as one, and where it hung is shown."""
    env = {
        "RUNYARD_MONITORING_INTERVAL": "0.3",
        "RUNYARD_STALL_MIN_S": "4",  # more than a busy machine may hold it up between steps
        "RUNYARD_STALL_ACTION": "stop",
    }
    yard = make_yard(env=env).start()
    script = tmp_path / "train.py"
    script.write_text(HANGS)
    ref = yard.submit([sys.executable, str(script)], grace_s=0.5, max_retries=0)
    ended = yard.wait(ref, "failed", seconds=90)
    assert ended["diagnosis"]["category"] == "stall"
    told = yard.ask(f"/jobs/{ref}/explain")
    [saved] = told["evidence"]
    assert any("nccl_trace_rank_0" in name for name in saved["files"])
    stacks = [name for name in saved["files"] if name.endswith(".txt")]
    got = yard.api("GET", f"/jobs/{ref}/attempts/{saved['attempt']}/evidence/{stacks[0]}")
    assert b"wedged_in_a_collective" in got.data
    assert stacks[0] in yard.cli("explain", ref).stdout
