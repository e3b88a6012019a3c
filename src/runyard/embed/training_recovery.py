"""Recovery inside another application: why a job failed, and another attempt by a plan."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from runyard import server
from runyard import settings as settings_module
from runyard.domain import errors
from runyard.domain.recovery import plan_reasons
from runyard.domain.states import JobStatus
from runyard.embed import open_queues
from runyard.embed.public_errors import public_errors
from runyard.embed.queue_manager import TrainingQueueManager, beside
from runyard.engine.access.actor import Actor
from runyard.engine.recover import recovery_desk
from runyard.engine.yard import Yard
from runyard.stores.base import Store
from runyard.stores.opening import open_store

P = ParamSpec("P")
T = TypeVar("T")
_APPLICATION = Actor("application", "admin")


class TrainingRecoveryService:
    """Finds out why jobs failed and starts them again the way that cause needs, from inside your
    own asyncio program.

    `db` is what the TrainingQueueManager was given (a database URL or an open store), or the
    manager itself. A running manager repairs jobs by itself as far as each job's `max_retries`
    allows; this service is for what it gave up, or for jobs that ask for no retries. `max_retries`
    are those of a job in all; `retry_delays` count where nothing better is known than to wait.
    """

    @public_errors()
    def __init__(
        self,
        db: str | Store | TrainingQueueManager,
        max_retries: int = 3,
        retry_delays: Sequence[float] = (60, 300, 900),
    ) -> None:
        self._db = db
        self._settings = settings_module.load(
            {
                "database_url": db if isinstance(db, str) else None,
                "data_dir": beside(db) if isinstance(db, str) else None,
                "max_retries": max_retries,
                "retry_delays": tuple(float(delay) for delay in retry_delays),
            }
        )
        self._turn = asyncio.Lock()

    async def analyze_failure(self, job_id: str | int) -> dict[str, Any]:
        """`{job_id, attempt_id, status, failure_type, diagnosis, plan, changes}`: as
        `POST /recovery/analyze/{id}` answers. NotEnded while it runs."""
        return await self._do(self._analyze, str(job_id))

    async def attempt_recovery(self, job_id: str | int) -> dict[str, Any]:
        """Start a failed job again by its plan. The same answer with `started`, and with `reason`
        where no attempt was started: no plan helps, or its retries are used up."""
        return await self._do(self._attempt, str(job_id))

    async def _do(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        async with self._turn:
            return await asyncio.to_thread(public_errors()(work), *arguments, **named)

    def _analyze(self, ref: str) -> dict[str, Any]:
        return self._with_yard(lambda yard: recovery_desk.told(yard.recovery.analyze(ref)))

    def _attempt(self, ref: str) -> dict[str, Any]:
        return self._with_yard(lambda yard: self._start(yard, ref))

    def _start(self, yard: Yard, ref: str) -> dict[str, Any]:
        found = yard.recover(ref, _APPLICATION, dry_run=True)
        if found.job.status is JobStatus.RETRYING:  # it is being repaired by itself
            return {**recovery_desk.told(found), "started": True, "reason": None}
        refused = None
        if found.plan is None:
            raise errors.AlreadyEnded(job=found.job.ref, status=found.job.status.value)
        if not found.plan.retries:
            refused = found.plan.reason.code, dict(found.plan.reason.params)
        elif found.job.retry_count >= self._settings.max_retries:
            told = {"max_retries": self._settings.max_retries}
            refused = plan_reasons.RETRIES_USED_UP, told
        if refused is not None:
            reason = {"code": refused[0], "params": refused[1]}
            return {**recovery_desk.told(found), "started": False, "reason": reason}
        found = yard.recover(ref, _APPLICATION, delays=self._settings.retry_delays)
        return {**recovery_desk.told(found), "started": True, "reason": None}

    def _with_yard(self, work: Callable[[Yard], dict[str, Any]]) -> dict[str, Any]:
        """By the manager's engine if it is in this process, else by one that runs nothing."""
        if isinstance(self._db, TrainingQueueManager):
            return work(open_queues.yard_of(self._db))
        manager = open_queues.find(self._db)
        if manager is not None:
            return work(open_queues.yard_of(manager))
        store = open_store(self._db) if isinstance(self._db, str) else self._db
        try:
            return work(server.compose(self._settings, store, node_id=f"recovery-{os.getpid()}"))
        finally:
            if isinstance(self._db, str):
                store.close()
