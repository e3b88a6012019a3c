"""What does an idle server cost, and what does each running job add?"""

from __future__ import annotations

import os
import time

from measurement import begin, quick
from yard_under_test import Yard, cpu_seconds, descendants, is_job_process, pss_mb

IDLE_S = 3 if quick() else 30
JOBS = 5 if quick() else 20


def ours() -> list[int]:
    """Server, keeper and supervisors, without the processes of jobs."""
    return [pid for pid in descendants(os.getpid()) if not is_job_process(pid)]


def main() -> None:
    result = begin(__doc__ or "")
    with Yard(max_concurrent=JOBS) as yard:
        yard.wait(yard.submit(["true"]))  # after the first job everything is warm
        time.sleep(2)
        assert yard.server is not None
        idle = ours()
        before, began = cpu_seconds(idle), time.monotonic()
        time.sleep(IDLE_S)
        share = (cpu_seconds(idle) - before) / (time.monotonic() - began) * 100
        idle_mb, idle_count = pss_mb(idle), len(idle)
        result.add("idle, PSS of the server", pss_mb([yard.server.pid]), "MB")
        result.add("idle, PSS of all", idle_mb, "MB", "<= 100")
        result.add("idle, processes", idle_count, "")
        result.add("idle, CPU", share, "% of a core", "<= 0.3")
        for _ in range(JOBS):
            yard.submit(["sleep", "1000"], grace_s=0)
        yard.wait_until_counted("running", JOBS)
        time.sleep(1)
        busy = ours()
        result.add("per running job, PSS", (pss_mb(busy) - idle_mb) / JOBS, "MB", "<= 2")
        result.add("per running job, processes", (len(busy) - idle_count) / JOBS, "", "<= 1")
    result.keep()


if __name__ == "__main__":
    main()
