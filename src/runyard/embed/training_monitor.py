"""The monitor inside another application: what runs, how far it is, and how it is doing."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from runyard import server
from runyard import settings as settings_module
from runyard.api import answers, metric_answers, monitor_answers
from runyard.embed import open_queues
from runyard.embed.public_errors import public_errors
from runyard.embed.queue_manager import TrainingQueueManager, beside
from runyard.engine import server_log
from runyard.engine.yard import Yard
from runyard.stores.base import Store
from runyard.stores.base_metrics import MetricRange
from runyard.stores.opening import open_store

P = ParamSpec("P")
T = TypeVar("T")


class TrainingMonitor:
    """Watches the jobs of a database from inside your own asyncio program.

    `db` is what the TrainingQueueManager was given (a database URL or an open store), or the
    manager itself. Beside a manager in the same process the monitor sees everything at once and
    sets how often it is measured; alone, beside a server on the same database, it reads what that
    server has recorded, and measures this machine itself.

    `history_size` samples of each series are kept in memory. No method blocks the event loop.
    """

    @public_errors()
    def __init__(
        self,
        db: str | Store | TrainingQueueManager,
        monitoring_interval: float = 10,
        history_size: int = 1000,
    ) -> None:
        self._db = db
        self._settings = settings_module.load(
            {
                "database_url": db if isinstance(db, str) else None,
                "data_dir": beside(db) if isinstance(db, str) else None,
                "monitoring_interval": monitoring_interval,
                "history_size": history_size,
            }
        )
        self._node_id = f"monitor-{os.getpid()}"
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._own: tuple[Yard, Store] | None = None

    async def __aenter__(self) -> TrainingMonitor:
        await self.start_monitoring()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop_monitoring()

    @property
    def is_monitoring(self) -> bool:
        return self._task is not None and not self._task.done()

    async def start_monitoring(self) -> None:
        """Measure every `monitoring_interval` seconds from now on. Twice is no error."""
        if not self.is_monitoring:
            await self._do(self._measure)  # what cannot work is told here, not in the background
            self._task = asyncio.create_task(self._keep_measuring())

    async def stop_monitoring(self) -> None:
        """Stop measuring, and let go of the database. Twice is no error."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._do(self._let_go)

    async def get_real_time_status(self, job_id: str | int) -> dict[str, Any]:
        """`{job_id, status, at, job, progress, eta, health, metrics, use, system}`: the job as
        `GET /jobs/{id}` answers, what is known of it right now, and the machines around it."""
        return await self._do(self._status, str(job_id))

    async def get_system_status(self) -> dict[str, Any]:
        """Machines, GPUs, the queue and what runs: as `GET /monitor/status` answers."""
        return await self._do(self._system)

    async def get_history(
        self, job_id: str | int, keys: Sequence[str] | None = None, points: int | None = None
    ) -> dict[str, Any]:
        """Series of a job by name, as `GET /jobs/{id}/metrics` answers; at most `points` of each
        (`history_size` by default), the lowest and the highest kept."""
        most = points or self._settings.history_size
        return await self._do(self._history, str(job_id), keys, most)

    # in another thread

    async def _do(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        async with self._turn:
            return await asyncio.to_thread(public_errors()(work), *arguments, **named)

    async def _keep_measuring(self) -> None:
        while True:
            await asyncio.sleep(self._settings.monitoring_interval)
            try:
                await self._do(self._measure)
            except Exception as error:  # a database that is away comes back
                server_log.of().opt(exception=error).error("monitoring failed; it is tried again")

    def _measure(self) -> None:
        manager = self._manager()
        if manager is None:
            self._yard().runtime.collecting.measure()
            return
        yard = open_queues.yard_of(manager)
        yard.runtime.collecting.every(self._settings.monitoring_interval)
        yard.board.keep(self._settings.history_size)

    def _status(self, ref: str) -> dict[str, Any]:
        yard = self._yard()
        found = yard.job_now(ref)
        known = monitor_answers.job(found)
        system = self._system()
        names = ("progress", "eta", "health", "metrics", "use")
        return {
            "job_id": known["job_id"],
            "status": known["status"],
            "at": system["at"],
            "job": answers.job(found.view),
            **{name: known[name] for name in names},
            "system": system,
        }

    def _system(self) -> dict[str, Any]:
        yard = self._yard()
        found = monitor_answers.overview(yard.overview())
        if self._own is not None:  # measured by this monitor, of the machine it runs on
            latest = yard.board.node_latest(self._node_id)
            found["here"] = {
                name: metric_answers.number(one.value) for name, one in latest.items()
            }
        return found

    def _history(self, ref: str, keys: Sequence[str] | None, most: int) -> dict[str, Any]:
        found = self._yard().history(
            job=ref, node=None, names=keys, most=most, chosen=MetricRange()
        )
        series: dict[str, Any] = metric_answers.series(found)["series"]
        return series

    # whose eyes

    def _manager(self) -> TrainingQueueManager | None:
        if isinstance(self._db, TrainingQueueManager):
            return self._db
        return open_queues.find(self._db)

    def _yard(self) -> Yard:
        manager = self._manager()
        if manager is not None:
            self._let_go()
            return open_queues.yard_of(manager)
        if self._own is None:
            assert not isinstance(self._db, TrainingQueueManager)
            store = open_store(self._db) if isinstance(self._db, str) else self._db
            yard = server.compose(self._settings, store, node_id=self._node_id)
            yard.board.tell_nobody()  # the server records; a second record would be another truth
            self._own = (yard, store)
        return self._own[0]

    def _let_go(self) -> None:
        own, self._own = self._own, None
        if own is not None and isinstance(self._db, str):
            own[1].close()
