"""Stays with a job until it has ended: attempt after attempt, over restarts of the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from runyard.sdk import errors
from runyard.sdk.job import Job

if TYPE_CHECKING:
    from runyard.sdk.client import Client

PATIENCE_S = 120.0  # how long a server may be away before following is given up
_SHORTEST_S = 0.02
_LONGEST_S = 0.5
_CHUNK = 1 << 20
_LONG_POLL_S = 20.0

T = TypeVar("T")


class View:
    """What is told while a job is run or followed. Here every call does nothing."""

    def submitted(self, job: Job) -> None: ...
    def waiting(self, job: Job) -> None: ...
    def log(self, data: bytes) -> None: ...
    def attempt_ended(self, job: Job, attempt: dict[str, Any]) -> None: ...
    def server_lost(self, patience_s: float) -> None: ...
    def server_back(self) -> None: ...
    def left_running(self, job: Job) -> None: ...
    def cancelling(self, job: Job, signal_name: str) -> None: ...
    def killing(self, job: Job) -> None: ...
    def refused(self, job: Job, error: errors.RunyardError) -> None: ...
    def unreachable(self, job: Job) -> None: ...
    def unproven(self, job: Job) -> None: ...
    def gone(self, job: Job) -> None: ...


class Follower:
    def __init__(self, client: Client, view: View, *, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._view = view
        self._patience_s = patience_s

    def follow(self, job: Job, *, attempt: int = 1) -> None:
        """Until the job has ended; ServerUnreachable when the server stays away too long."""
        pause_s = _SHORTEST_S
        while True:
            job.data = self._patiently(lambda: self._client.get(job.id))
            newest = job.attempt or {}
            if int(newest.get("number") or 0) >= attempt:
                self._follow_attempt(job, attempt)
                attempt, pause_s = attempt + 1, _SHORTEST_S
                continue
            if job.ended:
                return
            self._view.waiting(job)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.3, _LONGEST_S)

    def wait(self, job: Job) -> None:
        """Until the job has ended, whatever happens to the server meanwhile."""
        while not job.ended:
            job.data = self._patiently(lambda: self._client.wait_once(job.id, _LONG_POLL_S)).data

    def _follow_attempt(self, job: Job, number: int) -> None:
        offset, pause_s = 0, _SHORTEST_S
        while True:
            over = self._attempt_over(job, number)
            offset, came = self._copy_log(job, number, offset)
            if over:  # known before the last bytes were read, so none can have come since
                break
            pause_s = _SHORTEST_S if came else min(pause_s * 1.3, _LONGEST_S)
            time.sleep(pause_s)
            job.data = self._patiently(lambda: self._client.get(job.id))
        if not job.ended:
            attempts = self._patiently(lambda: self._client.attempts(job.id))
            ended = next((row for row in attempts if row.get("number") == number), None)
            if ended is not None:
                self._view.attempt_ended(job, ended)

    def _copy_log(self, job: Job, number: int, offset: int) -> tuple[int, bool]:
        came = False
        while True:
            data = self._patiently(lambda at=offset: self._log_bytes(job.id, number, at))  # type: ignore[misc]
            if not data:
                return offset, came
            self._view.log(data)
            offset, came = offset + len(data), True

    def _log_bytes(self, job_id: str, number: int, offset: int) -> bytes:
        try:
            return self._client.log_bytes(job_id, attempt=number, offset=offset, length=_CHUNK)
        except errors.NotFound:
            return b""  # not a byte was written yet

    @staticmethod
    def _attempt_over(job: Job, number: int) -> bool:
        newest = job.attempt or {}
        return job.ended or newest.get("number") != number or newest.get("status") == "ended"

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask again while the server is away, as after a restart, up to the patience."""
        lost_at: float | None = None
        while True:
            try:
                answer = ask()
            except (errors.ServerUnreachable, errors.ShuttingDown):
                now = time.monotonic()
                if lost_at is None:
                    lost_at = now
                    self._view.server_lost(self._patience_s)
                if now - lost_at > self._patience_s:
                    raise
                time.sleep(_LONGEST_S)
                continue
            if lost_at is not None:
                self._view.server_back()
            return answer
