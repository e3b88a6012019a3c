"""How long does a server killed with -9 need to take its running jobs over again?"""

from __future__ import annotations

import time

from measurement import begin, median, quick
from yard_under_test import Yard

JOBS = 10 if quick() else 200
ROUNDS = 1 if quick() else 3


def main() -> None:
    result = begin(__doc__ or "")
    with Yard(max_concurrent=JOBS) as yard:
        yard.wait(yard.submit(["true"]))
        empty = []
        for _ in range(ROUNDS):
            yard.kill()
            empty.append(yard.start())
        yard.submit_many(["sleep", "100000"], JOBS)
        yard.wait_until_counted("running", JOBS)
        full = []
        for _ in range(ROUNDS):
            yard.kill()
            full.append(yard.start())
            assert yard.counts().get("running") == JOBS, yard.counts()
        began = time.monotonic()
        listed = yard.api("GET", "/jobs?limit=1&status=running")
        yard.api("POST", f"/jobs/{listed[0]['job_id']}/force-kill?wait=10")
        yard.wait(listed[0]["job_id"], "cancelled")
        result.add("kill of one adopted job, proven gone", (time.monotonic() - began) * 1e3, "ms")
    result.add("start to ready, nothing runs", median(empty), "s")
    result.add(f"start to ready, {JOBS} jobs run", median(full), "s")
    result.add(f"adoption of {JOBS} jobs", median(full) - median(empty), "s", "<= 1")
    result.keep()


if __name__ == "__main__":
    main()
