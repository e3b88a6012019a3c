"""How long after a forced cancel GPU memory is free, against what the driver itself needs.

Only where there is an NVIDIA GPU and a python3 with torch: `python benchmarks/gpu_cancel.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable

import pynvml  # type: ignore[import-untyped]

from measurement import begin, median, quick
from yard_under_test import Yard, until

PYTHON = shutil.which("python3") or sys.executable
HOLD = """
import sys, time, torch
block = torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device="cuda")
block.fill_(1); torch.cuda.synchronize()
print("holding", flush=True)
time.sleep(600)
"""
SLACK = 256 << 20


def used() -> int:
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)


def seconds_until_free(empty: int, end: Callable[[], object]) -> float:
    began = time.monotonic()
    end()
    until(lambda: used() <= empty + SLACK, 60, every=0.002)
    return time.monotonic() - began


def by_the_driver(gigabytes: int, empty: int) -> float:
    """kill -9 of a process of our own."""
    holder = subprocess.Popen([PYTHON, "-c", HOLD, str(gigabytes)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    took = seconds_until_free(empty, holder.kill)
    holder.wait()
    holder.stdout.close()
    return took


def by_force(yard: Yard, gigabytes: int, empty: int) -> tuple[float, float]:
    """(memory free, cancel proven) after a force-kill of a job."""
    job = yard.submit([PYTHON, "-c", HOLD, str(gigabytes)], gpu_count=1)
    until(lambda: "holding" in yard.api("GET", f"/jobs/{job}/logs")["logs"], 120)
    began = time.monotonic()
    free = seconds_until_free(empty, lambda: yard.api("POST", f"/jobs/{job}/force-kill"))
    yard.wait(job, "cancelled", 60)
    return free, time.monotonic() - began


def main() -> None:
    pynvml.nvmlInit()
    measured = begin("How long until the memory of a GPU is free after a forced cancel?")
    rounds = 1 if quick() else 5
    empty = used()
    with Yard() as yard:
        for gigabytes in (1,) if quick() else (1, 10, 40, 100):
            floor = median([by_the_driver(gigabytes, empty) for _ in range(rounds)])
            ours = [by_force(yard, gigabytes, empty) for _ in range(rounds)]
            free, proven = (median(list(column)) for column in zip(*ours, strict=True))
            measured.add(f"{gigabytes} GiB: driver alone", floor, "s")
            measured.add(f"{gigabytes} GiB: forced cancel", free, "s")
            measured.add(f"{gigabytes} GiB: cancelled, with proof", proven, "s")
            measured.add(f"{gigabytes} GiB: forced cancel / driver", free / floor, "x", "<= 1.5")
    measured.keep()


if __name__ == "__main__":
    main()
