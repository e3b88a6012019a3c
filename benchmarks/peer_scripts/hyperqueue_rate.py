"""Run by HyperQueue's own interpreter: `true` jobs per second, one job each, two CPUs."""

from __future__ import annotations

import sys
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def main(count: int) -> None:
    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=2))
        client = cluster.client()
        began = time.monotonic()
        submitted = []
        for _ in range(count):
            job = Job()
            job.program(["true"])
            submitted.append(client.submit(job))
        client.wait_for_jobs(submitted)
        print(count / (time.monotonic() - began))


if __name__ == "__main__":
    main(int(sys.argv[1]))
