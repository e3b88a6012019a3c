"""What is measured of a real GPU: only where there is one (`make test-gpu`)."""

import shutil
import sys

import pytest

from yards import until

pytestmark = [pytest.mark.gpu, pytest.mark.serial]

TORCH_PYTHON = shutil.which("python3") or sys.executable
HELD_MB = 8_000
BUSY = f"""
import time, torch
block = torch.empty({HELD_MB} << 20, dtype=torch.uint8, device="cuda")
square = torch.randn(4096, 4096, device="cuda")
step, until = 0, time.monotonic() + 600
while time.monotonic() < until:
    for _ in range(50):
        square = torch.nn.functional.normalize(square @ square)
    torch.cuda.synchronize()
    step += 1
    print(f"iter {{step}}: loss {{1 / step:.4f}}, time 10ms", flush=True)
"""


@pytest.fixture
def watched(make_yard, tmp_path):
    locks = {"RUNYARD_GPU_LOCK_DIR": str(tmp_path / "locks")}
    yard = make_yard(env=locks | {"RUNYARD_MONITORING_INTERVAL": "1"}).start()
    ref = yard.submit([TORCH_PYTHON, "-c", BUSY], gpu_count=1, grace_s=1)
    until(lambda: any("iter 3:" in line for line in yard.logs(ref)), 120, lambda: yard.job(ref))
    return yard, ref


def value(answer, name):
    return (answer.get(name) or {}).get("value", 0)


def test_a_busy_gpu_is_measured_for_its_machine_and_its_job(watched):
    """R14: load, memory, temperature and power as the driver tells them; of the memory, what
    the job's own processes hold."""
    yard, ref = watched

    def gpu_of_the_machine():
        [gpu] = yard.ask("/monitor/status")["gpus"]
        told = gpu["metrics"]
        return told if told.get("util", 0) > 30 else None

    told = until(gpu_of_the_machine, 60, lambda: yard.ask("/monitor/status")["gpus"])
    assert told["memory_mb"] >= HELD_MB
    assert 10 < told["temperature"] < 110
    assert told["power_w"] > 50
    until(
        lambda: value(yard.ask(f"/monitor/job/{ref}")["system"], "gpu.memory_mb") >= HELD_MB,
        60,
        lambda: yard.ask(f"/monitor/job/{ref}")["system"],
    )
    assert value(yard.ask(f"/monitor/job/{ref}")["system"], "gpu.util") > 30
    yard.cancel(ref)


def test_a_rule_on_the_load_of_a_gpu_fires(watched):
    """R27: a person's own rule over what the driver tells."""
    yard, ref = watched
    rule = {"name": "hard-at-work", "expression": "gpu.util > 30 for 2s", "level": "warning"}
    made = yard.api("POST", "/alert-rules", rule)
    assert made.ok, made.body
    until(lambda: yard.ask(f"/alerts?job={ref}"), 60, lambda: yard.ask("/alerts"))
    yard.cancel(ref)
