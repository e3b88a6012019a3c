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
_LONG_POLL_S = 20.0
_CHUNK = 1 << 20

T = TypeVar("T")


class View:
    """What is told while a job is run or followed; calls come from several threads. Here every
    call does nothing."""

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
    def unanswered(self) -> None: ...
    def left_to_lease(self, job: Job, lease_s: float) -> None: ...
    def lease_failing(self, job: Job, lease_s: float) -> None: ...
    def service_starting(self, name: str, log: str) -> None: ...
    def service_ready(self, name: str, url: str) -> None: ...
    def service_restarting(self, name: str, exit_code: int) -> None: ...
    def service_lost(self, name: str, exit_code: int, job_id: str) -> None: ...
    def service_stopped(self, name: str, seconds: float) -> None: ...
    def service_stuck(self, name: str) -> None: ...
    def close(self) -> None:
        """Nothing more may be shown: the process is about to end."""


class Follower:
    def __init__(self, client: Client, view: View, *, patience_s: float = PATIENCE_S) -> None:
        self._client = client
        self._view = view
        self._patience_s = patience_s

    def follow(self, job: Job, *, attempt: int = 1) -> None:
        """Until the job has ended; ServerUnreachable when the server stays away too long."""
        pause_s = 0.0
        while True:
            self._look(job, pause_s)
            if int((job.attempt or {}).get("number") or 0) >= attempt:
                self._follow_attempt(job, attempt)
                attempt, pause_s = attempt + 1, 0.0
                continue
            if job.ended:
                return
            self._view.waiting(job)
            pause_s = _slower(pause_s)

    def wait(self, job: Job) -> None:
        """Until the job has ended, whatever happens to the server meanwhile."""
        while not job.ended:
            self._look(job, _LONG_POLL_S)

    def _look(self, job: Job, seconds: float) -> None:
        """The job as it is after `seconds`, or at once when it has ended."""
        job.data = self._patiently(lambda: self._client.wait_once(job.id, seconds)).data

    def _follow_attempt(self, job: Job, number: int) -> None:
        copy, pause_s = _LogCopy(self._client, job.id, number), 0.0
        while True:
            over = self._attempt_over(job, number)
            came = False
            while data := self._patiently(copy.more):
                self._view.log(data)
                came = True
            if over:  # known before the last bytes were read, so none can have come since
                break
            pause_s = _SHORTEST_S if came else _slower(pause_s)
            self._look(job, pause_s)
        if not job.ended:
            attempts = self._patiently(lambda: self._client.attempts(job.id))
            ended = next((row for row in attempts if row.get("number") == number), None)
            if ended is not None:
                self._view.attempt_ended(job, ended)

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


class _LogCopy:
    """An attempt's log, byte by byte from its beginning.

    Only bytes known to be there are asked for: where some were dropped the answer holds a line
    that says so instead, and what was asked for, not what came, tells where to go on.
    """

    def __init__(self, client: Client, job_id: str, number: int) -> None:
        self._client = client
        self._job_id = job_id
        self._number = number
        self._offset = 0
        self._size = 0

    def more(self) -> bytes:
        """What was written since, b"" when nothing was. May be called again after it raised."""
        if self._offset >= self._size:
            self._ask(0)
        length = min(self._size - self._offset, _CHUNK)
        if length <= 0:
            return b""
        data = self._ask(length)
        self._offset += length
        return data

    def _ask(self, length: int) -> bytes:
        try:
            data, self._size = self._client.log_part(
                self._job_id, offset=self._offset, length=length, attempt=self._number
            )
        except errors.NotFound:
            return b""  # the attempt has no log yet
        return data


def _slower(pause_s: float) -> float:
    return min(max(pause_s * 1.3, _SHORTEST_S), _LONGEST_S)
