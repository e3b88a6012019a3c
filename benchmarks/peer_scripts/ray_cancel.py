"""Run by Ray's own interpreter: Ray Jobs on a cluster of one node, all below this process."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from conversation import hold, until

OVER = {"SUCCEEDED", "FAILED", "STOPPED"}
PORT = 8265


class RayJobs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
        os.environ |= {"HOME": str(folder), "RAY_DISABLE_IMPORT_WARNING": "1"}

    def start(self) -> None:
        options = [
            "--head",
            "--node-ip-address=127.0.0.1",
            "--num-cpus=2",
            "--disable-usage-stats",
        ]
        options += ["--include-dashboard=true", "--dashboard-host=127.0.0.1"]
        options += [f"--dashboard-port={PORT}", f"--temp-dir={self.folder}/ray"]
        with (self.folder / "ray.log").open("wb") as log:
            ray = str(Path(sys.executable).parent / "ray")
            subprocess.run([ray, "start", *options], stdout=log, stderr=log, check=True)
        from ray.job_submission import JobSubmissionClient

        self.client: JobSubmissionClient
        until(self._reached, 60, "the dashboard")

    def _reached(self) -> bool:
        from ray.job_submission import JobSubmissionClient

        try:
            self.client = JobSubmissionClient(f"http://127.0.0.1:{PORT}")
            self.client.list_jobs()
        except Exception:  # whatever it says before it is up
            return False
        return True

    def submit(self, command: list[str]) -> str:
        return self.client.submit_job(entrypoint=shlex.join(command))

    def cancel(self, ref: str) -> None:
        self.client.stop_job(ref)

    def state(self, ref: str) -> tuple[str, bool]:
        state = str(self.client.get_job_status(ref).value)
        return state, state in OVER

    def close(self) -> None: ...


if __name__ == "__main__":
    hold(RayJobs)
