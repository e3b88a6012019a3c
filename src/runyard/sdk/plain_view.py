"""What `Client.run` and sessions say: the log to stdout, one line per step of an end to stderr."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from runyard.sdk import errors
from runyard.sdk.follower import View
from runyard.sdk.job import Job
from runyard.sdk.services import how_ended


class PlainView(View):
    def __init__(self) -> None:
        self._closed = False

    def log(self, data: bytes) -> None:
        if self._closed:
            return
        raw = getattr(sys.stdout, "buffer", None)
        if raw is None:  # a notebook
            sys.stdout.write(data.decode("utf-8", "replace"))
        else:
            raw.write(data)
        sys.stdout.flush()

    def left_running(self, job: Job) -> None:
        _say(f"{job.id} goes on without this process. Follow it: runyard logs -f {job.id}")

    def left_to_lease(self, job: Job, lease_s: float) -> None:
        _say(f"{job.id} is cancelled by the server when its lease of {lease_s:g} s runs out.")

    def cancelling(self, job: Job, signal_name: str) -> None:  # noqa: ARG002 (a view's call)
        _say(f"cancelling {job.id} ...")

    def killing(self, job: Job) -> None:
        _say(f"killing {job.id} without grace ...")

    def refused(self, job: Job, error: errors.RunyardError) -> None:
        _say(f"{job.id} could not be cancelled: {error.message}")

    def unreachable(self, job: Job) -> None:
        _say(f"the server does not answer. Cancel {job.id} later: runyard cancel {job.id}")

    def unanswered(self) -> None:
        _say("the server has not answered; 'runyard ls' tells whether it took the job.")

    def unproven(self, job: Job) -> None:
        _say(f"{job.id} is still cancelling; the server goes on with it.")

    def gone(self, job: Job) -> None:
        _say(ended_line(job.data))

    def lease_failing(self, job: Job, lease_s: float) -> None:
        _say(f"the lease of {job.id} ({lease_s:g} s) could not be renewed twice; still trying.")

    def service_starting(self, name: str, log: str) -> None:
        _say(f"local service {name} starts; log: {log}")

    def service_ready(self, name: str, url: str) -> None:
        _say(f"local service {name} is ready at {url}")

    def service_restarting(self, name: str, exit_code: int) -> None:
        _say(f"local service {name} {how_ended(exit_code)}; starting it again")

    def service_lost(self, name: str, exit_code: int, job_id: str) -> None:
        _say(f"local service {name} {how_ended(exit_code)}, so {job_id} is cancelled")

    def service_stopped(self, name: str, seconds: float) -> None:
        _say(f"local service {name} stopped in {seconds:.2f} s, nothing of it is left")

    def service_stuck(self, name: str) -> None:
        _say(f"local service {name} is still ending; its guard goes on with it")

    def close(self) -> None:
        self._closed = True


def ended_line(data: dict[str, Any]) -> str:
    """job-x cancelled: 3 processes ended in 0.02 s (proof: echild), ports 38001 given back."""
    text = f"{data.get('job_id')} {data.get('status')}"
    receipt = data.get("receipt") or {}
    if data.get("status") != "cancelled" or receipt.get("processes_ended") is None:
        return text
    text += (
        f": {receipt['processes_ended']} processes ended in {receipt.get('seconds') or 0:.2f} s"
    )
    text += f" (proof: {receipt.get('proof')})"
    gpus = [
        str(gpu.get("index"))
        for gpu in receipt.get("gpus") or ()
        if gpu.get("memory_after_mb") is not None  # else nobody could read it
    ]
    ports = [str(port) for port in receipt.get("ports") or ()]
    for kind, given_back in (("GPU", gpus), ("port", ports)):
        if given_back:
            text += f", {kind} {', '.join(given_back)} given back"
    return text


def _say(text: str) -> None:
    # A terminal that went away is no reason to fail; pythonw has no stderr at all.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"runyard: {text}\n")
        sys.stderr.flush()
