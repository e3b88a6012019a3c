"""Run by Ray's own interpreter: `true` jobs per second through Ray Jobs on a local cluster."""

from __future__ import annotations

import os
import sys
import time

os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}

import ray
from ray.job_submission import JobStatus, JobSubmissionClient


def main(count: int) -> None:
    context = ray.init(
        num_cpus=2, include_dashboard=True, log_to_driver=False, _temp_dir=os.getcwd()
    )
    client = JobSubmissionClient(f"http://{context.dashboard_url}")
    ended = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED}
    count = min(count, 24)
    began = time.monotonic()
    jobs = [client.submit_job(entrypoint="true", entrypoint_num_cpus=1) for _ in range(count)]
    while any(client.get_job_status(job) not in ended for job in jobs):
        time.sleep(0.05)
    print(count / (time.monotonic() - began))
    ray.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))
