"""Repair on a real GPU: real texts of a real driver (`make test-gpu`)."""

import shutil
import sys

import pytest

from yards import until

pytestmark = [pytest.mark.gpu, pytest.mark.serial]

TORCH_PYTHON = shutil.which("python3") or sys.executable
# Takes what is asked for on the GPU per sample: too much above a batch of 8.
OUT_OF_MEMORY = """
import argparse, pathlib, torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--history")
given = parser.parse_args()
with open(given.history, "a") as file:
    print(given.batch_size, given.gradient_accumulation_steps, file=file)
total = torch.cuda.get_device_properties(0).total_memory
sample = int(total / 10)
blocks = [torch.empty(sample, dtype=torch.uint8, device="cuda") for _ in range(given.batch_size)]
print("trained", flush=True)
"""
ASSERTED = """
import torch
table = torch.zeros(10, device="cuda")
index = torch.tensor([3, 99], device="cuda")
print(table[index].sum().item(), flush=True)
"""


@pytest.fixture
def gpu_yard(make_yard, tmp_path):
    env = {
        "RUNYARD_GPU_LOCK_DIR": str(tmp_path / "locks"),
        "RUNYARD_RETRY_DELAYS": "0.5,0.5,0.5",
    }
    return make_yard(env=env).start()


def test_a_real_out_of_memory_repairs_itself(gpu_yard, tmp_path):
    """R18, R20: half the batch, twice the accumulation, until it fits."""
    program = tmp_path / "train.py"
    program.write_text(OUT_OF_MEMORY)
    history = tmp_path / "history"
    command = [TORCH_PYTHON, str(program), "--batch-size", "32", "--history", str(history)]
    command += ["--gradient_accumulation_steps", "1"]
    ref = gpu_yard.submit(command, gpu_count=1, max_retries=3)
    gpu_yard.wait(ref, "completed", seconds=200)
    assert history.read_text().split("\n")[:3] == ["32 1", "16 2", "8 4"]
    first = gpu_yard.attempts(ref)[0]
    assert first["diagnosis"]["failure_type"] == "out_of_memory"
    assert "CUDA out of memory" in str(gpu_yard.ask(f"/jobs/{ref}/explain"))


def test_a_device_side_assert_is_the_programs_fault(gpu_yard, tmp_path):
    """R18: a wrong index fails the same way each time; it is named, and not tried again. The Xid
    that the driver writes for it is the program's too: the GPU stays in use."""
    program = tmp_path / "wrong.py"
    program.write_text(ASSERTED)
    ref = gpu_yard.submit([TORCH_PYTHON, str(program)], gpu_count=1, max_retries=3)
    ended = gpu_yard.wait(ref, "failed", seconds=200)
    assert ended["reason"]["code"] == "not_retryable", ended["reason"]
    [attempt] = gpu_yard.attempts(ref)
    assert (attempt["diagnosis"]["category"], attempt["diagnosis"]["failure_type"]) == (
        "code_data",
        "data",
    )
    assert "device-side assert" in attempt["diagnosis"]["root"]["text"]
    assert "device-side assert" in gpu_yard.cli("explain", ref).stdout
    [gpu] = gpu_yard.ask("/gpus")
    until(lambda: not gpu_yard.ask("/gpus")[0].get("fenced"), 5, gpu)
