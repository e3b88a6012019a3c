"""Run by Ray's own interpreter: a client of Ray Jobs on a cluster that others started, and a look
at what of the cluster is free. JSON lines, one answer to each question."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from typing import Any

import ray
from ray.job_submission import JobSubmissionClient

ADDRESS, DASHBOARD = sys.argv[1:3]
OVER = {"SUCCEEDED", "FAILED", "STOPPED"}


class Jobs:
    def __init__(self) -> None:
        ray.init(address=ADDRESS, log_to_driver=False, logging_level="ERROR")
        self.client = self._connected()
        self.all_gpus = ray.cluster_resources()["GPU"]

    def _connected(self) -> JobSubmissionClient:
        limit = time.monotonic() + 120
        while True:
            try:
                client = JobSubmissionClient(DASHBOARD)
                client.list_jobs()
            except Exception:  # whatever it says before it is up
                if time.monotonic() > limit:
                    raise
                time.sleep(0.5)
            else:
                return client

    def submit(self, command: list[str], gpus: int) -> str:
        return str(
            self.client.submit_job(entrypoint=shlex.join(command), entrypoint_num_gpus=gpus)
        )

    def stop(self, ref: str) -> None:
        self.client.stop_job(ref)

    def state(self, ref: str) -> str:
        return str(self.client.get_job_status(ref).value)

    def await_free(self) -> float:
        """When all GPUs of the cluster are free, and when that was."""
        while ray.available_resources().get("GPU", 0) < self.all_gpus:
            time.sleep(0.005)
        return time.time()

    def follow(self, ref: str) -> tuple[int, float]:
        """How much came, and the seconds from the first line to the last."""
        return asyncio.run(self._follow(ref))

    async def _follow(self, ref: str) -> tuple[int, float]:
        count, began = 0, 0.0
        async for lines in self.client.tail_job_logs(ref):
            began = began or time.monotonic()
            count += len(lines)
        return count, time.monotonic() - began


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Ray prints is no answer
    jobs = Jobs()
    print(json.dumps("ready"), file=answers)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        answer: Any = getattr(jobs, name)(*arguments)
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
