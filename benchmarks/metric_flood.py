"""How fast does the API answer while 50 jobs report 1,000 metric points a second for a minute?"""

from __future__ import annotations

import contextlib
import sys
import time
from itertools import cycle

from measurement import begin, percentile, quick
from yard_under_test import Yard, until

JOBS = 5 if quick() else 50
RATE = 20  # points a second of each job
SPAN_S = 3 if quick() else 60
EVERY_S = 0.02  # somebody asks so often
POINTS = RATE * SPAN_S
# Keeps to its pace however busy the machine is: what it is late with comes at once.
PROGRAM = f"""
import time
from runyard import report
begun = time.time()
for step in range(1, {POINTS} + 1):
    late = begun + step / {RATE} - time.time()
    if late > 0:
        time.sleep(late)
    report(step=step, total={POINTS}, loss=1.0 / step)
assert report.dropped() == 0
"""


def asked(yard: Yard, jobs: list[str], seconds: float) -> list[float]:
    """Milliseconds of each answer to what a page of jobs, a job and its chart ask for."""
    took: list[float] = []
    paths = [f"/jobs/{jobs[0]}", "/jobs?limit=20", f"/jobs/{jobs[-1]}/metrics?points=1000"]
    limit = time.monotonic() + seconds
    for path in cycle([*paths, "/monitor/status"]):
        if time.monotonic() > limit:
            return took
        begun = time.perf_counter()
        yard.api("GET", path)
        took.append(1000 * (time.perf_counter() - begun))
        time.sleep(EVERY_S)
    return took


def lost(yard: Yard, jobs: list[str]) -> int:
    """Points that were reported and are not kept, once each."""
    missing = 0
    for job in jobs:
        answer = yard.api("GET", f"/jobs/{job}/metrics?keys=loss&points=10000")["series"]
        kept = answer.get("loss", {}).get("steps", [])
        missing += POINTS - len(set(kept)) + len(kept) - len(set(kept))
    return missing


def main() -> None:
    result = begin(__doc__ or "")
    with Yard(max_concurrent=JOBS) as yard:
        idle_job = yard.submit(["true"])
        yard.wait(idle_job)
        time.sleep(2)
        idle = asked(yard, [idle_job], 2 if quick() else 10)
        script = yard.folder / "flood.py"
        script.write_text(PROGRAM)
        command = [sys.executable, str(script)]
        jobs = [yard.submit(command) for _ in range(JOBS)]
        yard.wait_until_counted("running", JOBS)
        busy = asked(yard, jobs, SPAN_S * 0.9)
        until(lambda: yard.counts().get("completed", 0) > JOBS, 600, every=0.5)
        with contextlib.suppress(TimeoutError):  # what was told last may be on its way
            until(lambda: not lost(yard, jobs), 60, every=1.0)
        missing = lost(yard, jobs)
    result.add("points a second", JOBS * RATE, "")
    result.add("points lost or kept twice", missing, "", "<= 0")
    result.add("answers of an idle server, p50", percentile(idle, 50), "ms")
    result.add("answers of an idle server, p95", percentile(idle, 95), "ms")
    result.add("answers meanwhile, p50", percentile(busy, 50), "ms")
    result.add("answers meanwhile, p95", percentile(busy, 95), "ms", "<= 50")
    result.keep()


if __name__ == "__main__":
    main()
