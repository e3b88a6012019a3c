"""What does a queue of 100,000 waiting jobs cost a submit, the drain, a page of the list?"""

from __future__ import annotations

import time
from collections.abc import Callable

from measurement import begin, median, percentile, quick
from yard_under_test import BASE, SMALL, Yard, cpu_seconds

DEPTH = 3000 if quick() else 100_000
SUBMITS = 50 if quick() else 400
DRAINED = 60 if quick() else 1000
PAGES = 5 if quick() else 40


def milliseconds(act: Callable[[], object], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


def submits(yard: Yard) -> list[float]:
    """With both slots taken, so that a submit is only a submit, in an empty queue too."""
    body = {"command": ["true"], **SMALL}
    return milliseconds(lambda: yard.http.request("POST", f"{BASE}/jobs", body), SUBMITS)


def take_slots(yard: Yard) -> list[str]:
    jobs = [yard.submit(["sleep", "100000"], priority="high", grace_s=0) for _ in range(2)]
    for job in jobs:
        yard.wait(job, "running")
    return jobs


def drain(yard: Yard, jobs: int) -> tuple[float, float]:
    """(jobs per second, milliseconds of the server's CPU per job) while `jobs` more end."""
    assert yard.server is not None
    before = yard.counts().get("completed", 0)
    spent = cpu_seconds([yard.server.pid])
    began = time.monotonic()
    yard.api("POST", "/system/start-queue")
    yard.wait_until_counted("completed", before + jobs)
    rate = jobs / (time.monotonic() - began)
    yard.api("POST", "/system/stop-queue")
    return rate, (cpu_seconds([yard.server.pid]) - spent) * 1e3 / jobs


def main() -> None:
    result = begin(__doc__ or "")
    with Yard(max_concurrent=2, max_body_mb="64") as yard:
        drain_shallow(yard)
        holders = take_slots(yard)
        empty = submits(yard)
        for job in holders:
            yard.api("POST", f"/jobs/{job}/force-kill")
            yard.wait(job, "cancelled")
        shallow_rate, shallow_cpu = drain_shallow(yard)
        began = time.monotonic()
        yard.submit_many(["true"], DEPTH)
        result.add("filling, in bulk", DEPTH / (time.monotonic() - began), "jobs/s")
        pages = milliseconds(lambda: yard.api("GET", "/jobs?limit=50"), PAGES)
        waiting = milliseconds(lambda: yard.api("GET", "/jobs?limit=50&status=pending"), PAGES)
        deep_rate, deep_cpu = drain(yard, DRAINED)
        holders = take_deep_slots(yard)
        deep = submits(yard)
        place = milliseconds(lambda: yard.api("GET", "/queue/status?limit=50"), PAGES)
    result.add("submit p50, empty", median(empty), "ms")
    result.add(f"submit p50, {DEPTH} waiting", median(deep), "ms")
    result.add("submit p50, deep over empty", median(deep) / median(empty), "x", "<= 1.2")
    result.add("drain, shallow", shallow_rate, "jobs/s")
    result.add("drain, deep", deep_rate, "jobs/s")
    result.add("drain, deep over shallow", deep_rate / shallow_rate, "x", ">= 0.9")
    result.add("CPU of the server per job, shallow", shallow_cpu, "ms")
    result.add("CPU of the server per job, deep over shallow", deep_cpu / shallow_cpu, "x")
    result.add("a page of the list, p95", percentile(pages, 95), "ms", "<= 50")
    result.add("a page of waiting jobs, p95", percentile(waiting, 95), "ms", "<= 50")
    result.add("queue status, p95", percentile(place, 95), "ms")
    result.keep()


def drain_shallow(yard: Yard) -> tuple[float, float]:
    yard.api("POST", "/system/stop-queue")
    yard.submit_many(["true"], DRAINED)
    answer = drain(yard, DRAINED)
    # What the submits of the measurement left behind ends too, so that the queue is empty again.
    yard.api("POST", "/system/start-queue")
    while yard.counts().get("pending", 0):
        time.sleep(0.05)
    return answer


def take_deep_slots(yard: Yard) -> list[str]:
    yard.api("POST", "/system/start-queue")
    return take_slots(yard)


if __name__ == "__main__":
    main()
