"""The queue inside another application: the same engine, without HTTP."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Any

from runyard import server
from runyard import settings as settings_module
from runyard.api import answers
from runyard.data_dir import DataDir
from runyard.domain import errors, states
from runyard.domain.job import Priority
from runyard.embed import open_queues
from runyard.embed.public_errors import public_errors
from runyard.engine.access.actor import Actor
from runyard.engine.yard import Yard
from runyard.settings import Settings
from runyard.stores.base import Store
from runyard.stores.opening import open_store
from runyard.wire.jobs import read_job

_SQLITE = "sqlite:///"
_APPLICATION = Actor("application", "admin")


class TrainingQueueManager:
    """Queues training jobs and runs them on this machine, from inside your own program.

    `db` is a database URL (`sqlite:///...` or `postgresql://...`) or an open store. `data_dir`
    keeps logs and attempt folders; by default it lies beside a SQLite file. Only one server or
    manager can use a data directory at a time: DataDirInUse says which process has it.

    Jobs may be given as `job-...` or by their numeric id. Nothing runs before
    `start_processing()`; what still runs at `stop_processing()` is cancelled, or kept and adopted
    by the next start with `keep=True`.
    """

    @public_errors()
    def __init__(
        self,
        db: str | Store,
        max_concurrent: int = 2,
        resource_check_interval: float = 30,
        data_dir: str | Path | None = None,
        **settings: object,
    ) -> None:
        url = db if isinstance(db, str) else None
        self._settings = settings_module.load(
            {
                "database_url": url,
                "max_concurrent": max_concurrent,
                "resource_check_interval": resource_check_interval,
                "data_dir": data_dir or beside(url),
                **settings,
            }
        )
        self._folder = DataDir.open(self._settings.data_dir)
        self._owns_store = isinstance(db, str)
        self._closed = False
        try:
            self._store = open_store(db) if isinstance(db, str) else db
            self._yard = self._compose()
        except BaseException:
            self._let_go()
            raise
        open_queues.add(self)

    def __enter__(self) -> TrainingQueueManager:
        try:
            self.start_processing()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def is_processing(self) -> bool:
        return self._yard.runtime.running

    @public_errors()
    def start_processing(self) -> None:
        """Adopt what still runs from before, and begin to start jobs. Twice is no error."""
        if self._yard.runtime.running:
            return
        try:
            self._yard.open()
        except BaseException:  # it may work the next time: a full disk, a database that is away
            self._yard.close(keep=True)
            self._yard = self._compose()
            raise

    @public_errors()
    def stop_processing(self, *, keep: bool = False, timeout: float | None = None) -> None:
        """Stop starting jobs and end those that run (or leave them to the next start)."""
        if not self._yard.runtime.running:
            return
        ended = False if keep else self._yard.runtime.end_all(patience_s=timeout)
        self._yard.close(keep=not ended)
        self._yard = self._compose()

    @public_errors()
    def close(self) -> None:
        """Stop processing and let go of the database and the data directory."""
        if self._closed:
            return
        self.stop_processing()
        self._closed = True
        open_queues.remove(self)
        self._let_go()

    @public_errors()
    def submit_training_job(self, **fields: Any) -> str:
        """Store a job, with the fields of a job file; its id. It waits until processing starts,
        with `hold=True` until it is enqueued."""
        [job] = self._yard.submit([read_job(fields).to_submission()], _APPLICATION)
        return job.ref

    @public_errors()
    def enqueue_training_job(
        self, job_id: str | int, priority: str | Priority | None = None
    ) -> dict[str, Any]:
        """Release a held job and set its priority: high, medium or low."""
        try:
            wanted = Priority(priority) if priority is not None else None
        except ValueError:
            choices = ", ".join(item.value for item in Priority)
            raise errors.BadRequest(
                f"A priority is one of {choices}.", field="priority", value=priority
            ) from None
        self._yard.enqueue(str(job_id), _APPLICATION, wanted)
        return self.get_job(job_id)

    @public_errors()
    def cancel(self, job_id: str | int, *, force: bool = False, wait: float = 0) -> str:
        """Ask for the end, and wait up to `wait` seconds for the proof; the status then."""
        self._yard.cancel(str(job_id), _APPLICATION, force=force)
        return self.wait(job_id, wait)

    @public_errors()
    def wait(self, job_id: str | int, timeout: float) -> str:
        """The job's status when it has ended, or after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            status = self._yard.job(str(job_id)).job.status
            if status in states.ENDED or time.monotonic() >= deadline:
                return status.value
            time.sleep(0.02)

    @public_errors()
    def get_job(self, job_id: str | int) -> dict[str, Any]:
        """As `GET /jobs/{id}` answers."""
        return answers.job(self._yard.job(str(job_id)))

    @public_errors()
    def get_queue_status(self, limit: int = 100) -> dict[str, Any]:
        """Counts by status, what runs, what waits and why: as `GET /queue/status` answers."""
        return answers.queue(self._yard.queue_status(limit))

    @public_errors()
    def log_path(self, job_id: str | int) -> Path | None:
        """The log of the newest attempt; None before the first."""
        path, _ = self._yard.log_path(str(job_id))
        return Path(path) if path else None

    def _let_go(self) -> None:
        if self._owns_store and hasattr(self, "_store"):
            self._store.close()
        self._folder.close()

    def _compose(self) -> Yard:
        return server.compose(self._settings, self._store)


def beside(url: str | None) -> Path | None:
    """A SQLite file keeps its data directory beside it; else the ordinary default holds."""
    if url is None or not url.startswith(_SQLITE):
        return None
    path = Path(url.removeprefix(_SQLITE))
    return path.with_name(path.name + "-runyard")
