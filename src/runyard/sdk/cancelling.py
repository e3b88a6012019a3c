"""Ending a job from a client: ask, wait for the proof, and never for longer than allowed."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

from runyard.sdk import errors
from runyard.sdk.job import Job

if TYPE_CHECKING:
    from runyard.sdk.client import Client

DEFAULT_GRACE_S = 40.0
BEYOND_GRACE_S = 10.0
ANSWER_S = 3.0  # a server that is there answers a cancel within this
_TRIES = 2


class Outcome(NamedTuple):
    kind: str  # gone, unproven, unreachable, refused
    error: errors.RunyardError | None = None


def cancel(client: Client, job: Job, patience_s: float, *, force: bool) -> Outcome:
    """Ask for the end and wait until nothing of the job is left; `job` holds the last answer."""
    deadline = time.monotonic() + patience_s
    ask = client.force_kill if force else client.cancel
    for tried in range(1, _TRIES + 1):
        try:
            job.data = {**job.data, **ask(job.id, timeout=ANSWER_S)}
            break
        except errors.AlreadyEnded:
            break
        except errors.ServerUnreachable:
            if tried == _TRIES:
                return Outcome("unreachable")
            time.sleep(0.3)
        except errors.RunyardError as refused:
            return Outcome("refused", refused)
    return _proof(client, job, deadline)


def _proof(client: Client, job: Job, deadline: float) -> Outcome:
    lost_at: float | None = None
    while not job.ended:
        left = deadline - time.monotonic()
        if left <= 0 or (lost_at is not None and time.monotonic() - lost_at > ANSWER_S):
            return Outcome("unproven")
        try:
            job.data = client.wait_once(job.id, min(left, ANSWER_S)).data
            lost_at = None
        except errors.ServerUnreachable:
            lost_at = lost_at or time.monotonic()
            time.sleep(0.2)
    if not job.data.get("receipt"):
        with contextlib.suppress(errors.RunyardError):
            job.data["receipt"] = client.receipt(job.id, timeout=ANSWER_S)
    return Outcome("gone")
