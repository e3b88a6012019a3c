"""What does it cost to watch 100 running jobs?"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from measurement import begin, quick
from runyard.executors.process_usage import ProcessUsage
from runyard.probes.node_meter import PsutilMeter
from yard_under_test import Yard, cpu_seconds

JOBS = 10 if quick() else 100
INTERVAL_S = 10.0
SPAN_S = 5.0 if quick() else 60.0
ROUNDS = 5 if quick() else 50
SILENT = ["sleep", "1000"]
# As a training does: a step and its loss every second.
TRAINING = """
import time
for step in range(100_000):
    print(f"iter {step}: loss {2 + 1 / (step + 1):.4f}, time 1000.00ms, mfu 3.00%", flush=True)
    time.sleep(1)
"""
TELLING = [sys.executable, "-I", "-S", "-c", TRAINING]


def measuring_ms(yard: Yard) -> tuple[float, float]:
    """CPU milliseconds of one round: all attempts, and the node."""
    attempts = yard.folder / "data" / "attempts"
    names = os.listdir(attempts)
    usage = ProcessUsage(lambda name: str(attempts / name))
    assert len(usage.of(names)) >= JOBS  # the journals are read once
    began = time.process_time()
    for _ in range(ROUNDS):
        usage.of(names)
    each = (time.process_time() - began) / ROUNDS * 1000
    with tempfile.TemporaryDirectory() as folder:
        meter = PsutilMeter(Path(folder))
        began = time.process_time()
        for _ in range(ROUNDS):
            meter.read()
    return each, (time.process_time() - began) / ROUNDS * 1000


def served_percent(interval: str, command: list[str]) -> float:
    """Of a core, for the server with all its loops and jobs that do this."""
    with Yard(max_concurrent=JOBS, monitoring_interval=interval) as yard:
        for _ in range(JOBS):
            yard.submit(command, grace_s=0)
        yard.wait_until_counted("running", JOBS)
        time.sleep(20 if not quick() else 2)  # nobody looks any more, and PSS was read once
        assert yard.server is not None
        before, began = cpu_seconds([yard.server.pid]), time.monotonic()
        time.sleep(SPAN_S)
        return (cpu_seconds([yard.server.pid]) - before) / (time.monotonic() - began) * 100


def main() -> None:
    result = begin(__doc__ or "")
    with Yard(max_concurrent=JOBS) as yard:
        for _ in range(JOBS):
            yard.submit(SILENT, grace_s=0)
        yard.wait_until_counted("running", JOBS)
        attempts_ms, node_ms = measuring_ms(yard)
    processes = sum(name.isdigit() for name in os.listdir("/proc")) + 2 * JOBS
    result.add(f"processes on the machine, with {JOBS} jobs", processes, "")
    result.add("one look at all attempts", attempts_ms, "ms CPU")
    result.add("one look at the node", node_ms, "ms CPU")
    share = (attempts_ms + node_ms) / 1000 / INTERVAL_S * 100
    result.add("measuring every 10 s", share, "% of a core", "<= 1")
    watched, unwatched = served_percent("10", SILENT), served_percent("100000", SILENT)
    result.add("server, measuring every 10 s", watched, "% of a core")
    result.add("server, not measuring", unwatched, "% of a core")
    result.add("measuring, recording and keeping", watched - unwatched, "% of a core", "<= 1")
    told = served_percent("10", TELLING) - watched
    result.add("and reading a line of each job every second", told, "% of a core")
    result.keep()


if __name__ == "__main__":
    main()
