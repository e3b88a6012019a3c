"""Jobs whose disk was full: they are tried again when there is room, and tell how much is missing.

The server that saw the failure looks, for it is its disk. What it has written down ends by itself
a while after its last look, so that a job is not lost with a server.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runyard.domain import reasons
from runyard.domain.job import Job
from runyard.domain.reasons import Reason
from runyard.domain.recovery.plan import Plan
from runyard.domain.states import JobStatus
from runyard.engine import job_dirs, server_log
from runyard.engine.parts import Parts
from runyard.engine.recover import disk_room
from runyard.stores.base import JobFilter, Transaction

KIND = "disk"
LEAST_DELAY_S = 1.0  # until the first look
_HELD_S = 60.0  # beyond the next look
_RETRYING = frozenset({JobStatus.RETRYING})
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class _Wait:
    ref: str
    attempt: int  # that failed
    path: str
    wanted: int
    due: float  # not before then, whatever is free


def is_wanted(plan: Plan) -> bool:
    return (plan.wait_for or {}).get("kind") == KIND


def disk_path(job: Job, named: object, data_dir: str) -> str:
    """Where room is needed: what the error named, if that is a place on this machine."""
    if job.spec.image is None and isinstance(named, str) and os.path.isabs(named):
        return named
    return job_dirs.checkpoint_dir(job, data_dir)


class SpaceWaits:
    def __init__(self, parts: Parts, wake: Callable[[], None]) -> None:
        self._parts = parts
        self._wake = wake
        self._lock = threading.Lock()
        self._waits: dict[int, _Wait] = {}

    def expect(self, job: Job, number: int, plan: Mapping[str, Any], due: float) -> None:
        """Attempt `number` of the job has failed because of a full disk."""
        wait = plan["wait_for"]
        path = disk_path(job, wait.get("path"), str(self._parts.settings.data_dir))
        with self._lock:
            self._waits[job.id] = _Wait(job.ref, number, path, int(wait.get("bytes") or 0), due)

    def load(self) -> None:
        """Those that waited when the server before this one ended."""
        with self._parts.store.read() as reader:
            jobs = reader.jobs(JobFilter(statuses=(JobStatus.RETRYING,)), limit=_MOST).jobs
            for job in jobs:
                failed = reader.attempt(job.attempt_id()) if job.attempt_number else None
                if failed is None or failed.node_id != self._parts.node_id:
                    continue
                plan = failed.plan or {}
                if (plan.get("wait_for") or {}).get("kind") == KIND and not job.ready:
                    due = (failed.ended_at or failed.created_at) + plan["delay_s"]
                    self.expect(job, failed.number, plan, due)
        self.look()

    def look(self) -> None:
        """Let go on what has room now; the others wait on."""
        with self._lock:
            waits = dict(self._waits)
        over = [job_id for job_id, wait in waits.items() if self._is_over(job_id, wait)]
        with self._lock:
            for job_id in over:
                self._waits.pop(job_id, None)
        if over:
            self._wake()

    def _is_over(self, job_id: int, wait: _Wait) -> bool:
        free = disk_room.free_bytes(wait.path)
        lacks = free is not None and free < wait.wanted
        now = self._parts.clock()
        params = {"path": wait.path, "free_bytes": free, "wanted_bytes": wait.wanted}
        reason = Reason(reasons.WAITING_FOR_SPACE, params)

        def work(tx: Transaction) -> bool:
            job = tx.job(job_id)
            if job is None or job.status is not JobStatus.RETRYING or job.ready:
                return True  # cancelled, or somebody asked for it at once
            if job.attempt_number != wait.attempt:
                return True
            if lacks:
                held = now + _HELD_S
                tx.update_job(job_id, _RETRYING, ready=False, not_before=held, reason=reason)
            else:
                tx.update_job(job_id, _RETRYING, ready=False, not_before=max(wait.due, now))
            return not lacks

        over = self._parts.store.write(work, durable=False)
        if over and not lacks:
            log = server_log.of(wait.ref)
            log.info("there is room again on {}: {} bytes free", wait.path, free)
        return over
