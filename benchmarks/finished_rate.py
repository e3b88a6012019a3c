"""How many `true` jobs end per second with two slots, every promise kept?"""

from __future__ import annotations

import os
import shutil
import time

import peers
from measurement import begin, median, quick
from yard_under_test import Yard, cpu_seconds

JOBS = 100 if quick() else 1500
ROUNDS = 1 if quick() else 3
TRUE = shutil.which("true") or "/bin/true"


def spawn_rate(seconds: float = 1.0) -> float:
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        for pid in [os.posix_spawn(TRUE, [TRUE], {}) for _ in range(2)]:
            os.waitpid(pid, 0)
        count += 2
    return count / (time.monotonic() - began)


def runyard_rate(yard: Yard, jobs: int) -> float:
    """From before the submit to the last recorded end."""
    before = yard.counts().get("completed", 0)
    began = time.monotonic()
    yard.submit_many([TRUE], jobs)
    yard.wait_until_counted("completed", before + jobs)
    return jobs / (time.monotonic() - began)


def tsp_rate(jobs: int) -> float:
    with peers.task_spooler(2) as spooler:
        began = time.monotonic()
        for _ in range(jobs):
            spooler.submit([TRUE])
        spooler.drain()
        return jobs / (time.monotonic() - began)


def main() -> None:
    result = begin(__doc__ or "")
    floors, rates, spooled = [], [], []
    with Yard(max_concurrent=2) as yard:
        runyard_rate(yard, 50)
        assert yard.server is not None
        before = cpu_seconds([yard.server.pid])
        for _ in range(ROUNDS):
            floors.append(spawn_rate())
            rates.append(runyard_rate(yard, JOBS))
            if peers.has_tsp():
                spooled.append(tsp_rate(min(JOBS, 400)))
        spent = cpu_seconds([yard.server.pid]) - before
    result.add("floor: posix_spawn, two at a time", median(floors), "jobs/s")
    result.add("runyard", median(rates), "jobs/s", ">= 200")
    result.add("runyard over floor", median(rates) / median(floors), "x")
    result.add("runyard, CPU of the server per job", spent * 1e3 / (JOBS * ROUNDS), "ms")
    if spooled:
        result.add("task-spooler", median(spooled), "jobs/s")
        result.add("runyard over task-spooler", median(rates) / median(spooled), "x")
    for name in peers.FROM_INDEX:
        if (rate := peers.finished_rate_of(name, JOBS)) is not None:
            result.add(name, rate, "jobs/s")
            result.add(f"runyard over {name}", median(rates) / rate, "x")
    result.keep()


if __name__ == "__main__":
    main()
