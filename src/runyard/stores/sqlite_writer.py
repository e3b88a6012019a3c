"""The one writer of a SQLite file: runs closures in groups and commits each group once.

There is one turn to write. A thread that finds it free and nobody waiting takes it and writes by
itself, which saves two changes of thread; everybody else queues for the writer's own thread.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from runyard.domain import errors
from runyard.domain.events import StoredEvent
from runyard.stores import sqlite_errors
from runyard.stores.base_notifications import Happened
from runyard.stores.prepared import PreparedStatements
from runyard.stores.session import ShapeCache
from runyard.stores.sql import SqlTransaction
from runyard.stores.sqlite_connection import SqliteDriver, connect

_GROUP_LIMIT = 256
_QUIET_S = 0.5  # after this long without a write the log is copied into the database


@dataclass(slots=True)
class Request:
    """A closure to run, and where its answer goes."""

    work: Callable[[Any], Any]
    durable: bool
    future: Future[Any]


@dataclass(slots=True)
class _Outcome:
    request: Request
    tx: SqlTransaction
    value: Any = None
    error: BaseException | None = None


class Writer:
    def __init__(
        self,
        path: str,
        statements: PreparedStatements,
        shape_cache: ShapeCache,
        hear: Callable[[Sequence[StoredEvent]], None],
    ) -> None:
        self._path = path
        self._statements = statements
        self._shape_cache = shape_cache
        self._hear = hear
        self.hooks: list[Callable[[Any, Happened], None]] = []  # called before each commit
        self._queue: SimpleQueue[Request | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._turn_of: int | None = None
        self._closed = False
        self._full_sync = True
        self._connection: sqlite3.Connection | None = self._connect()
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    def put(self, request: Request) -> None:
        with self._lock:
            if self._closed:
                raise errors.ShuttingDown()
            self._queue.put(request)

    def write_here(self, request: Request) -> None:
        """Write in the caller's thread if the turn is free; else queue."""
        if not self._queue.empty() or not self._turn.acquire(blocking=False):
            self.put(request)
            return
        try:
            with self._lock:
                if self._closed:
                    raise errors.ShuttingDown()
            request.future.set_running_or_notify_cancel()
            answers = self._written([request])
        finally:
            self._turn.release()
        for answer in answers:
            answer()

    def is_this_thread(self) -> bool:
        """Whether the caller is inside a write, where waiting for another would never end."""
        return threading.get_ident() in (self._turn_of, self._thread.ident)

    def close(self) -> None:
        """After everything that was put before is answered."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        going_on = True
        while going_on:
            group, going_on = self._next_group()
            if group:
                with self._turn:
                    answers = self._written(group)
                # Answered outside the turn: whoever hears of it may take its time.
                for answer in answers:
                    answer()
        with self._turn:
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._connection.close()

    def _written(self, group: Sequence[Request]) -> list[Callable[[], None]]:
        self._turn_of = threading.get_ident()
        answers: list[Callable[[], None]] = []
        try:
            self._write(group, answers)
        finally:
            self._turn_of = None
        return answers

    def _next_group(self) -> tuple[list[Request], bool]:
        """All that waits now: a lone request is never held back for company."""
        try:
            waiting = self._queue.get(timeout=_QUIET_S)
        except Empty:
            with self._turn:
                self._copy_log()
            waiting = self._queue.get()
        group: list[Request] = []
        while waiting is not None:
            if waiting.future.set_running_or_notify_cancel():
                group.append(waiting)
            if len(group) == _GROUP_LIMIT:
                return group, True
            try:
                waiting = self._queue.get_nowait()
            except Empty:
                return group, True
        return group, False

    def _write(self, group: Sequence[Request], answers: list[Callable[[], None]]) -> None:
        try:
            outcomes = self._commit(group)
        except BaseException as error:
            self._recover()
            self._write_failed(group, error, answers)
            return
        told: list[StoredEvent] = []
        again: list[Request] = []
        for outcome in outcomes:
            future = outcome.request.future
            if outcome.error is None:
                outcome.tx.committed()
                told += outcome.tx.told
                answers.append(partial(future.set_result, outcome.value))
            elif isinstance(outcome.error, sqlite3.Error):
                again.append(outcome.request)
            else:
                answers.append(partial(future.set_exception, self._as_told(outcome.error)))
        if told:
            self._hear(told)
        for request in again:
            self._write([request], answers)

    def _write_failed(
        self,
        group: Sequence[Request],
        error: BaseException,
        answers: list[Callable[[], None]],
    ) -> None:
        if len(group) > 1:
            # One may have brought down the others: each gets a transaction of its own.
            for request in group:
                self._write([request], answers)
        elif sqlite_errors.is_foreign_key(error) and self._shape_cache:
            # A remembered shape may have been pruned.
            self._shape_cache.clear()
            self._write(group, answers)
        else:
            answers.append(partial(group[0].future.set_exception, self._as_told(error)))

    def _as_told(self, error: BaseException) -> BaseException:
        if isinstance(error, sqlite3.Error | sqlite3.Warning):
            told: errors.RunyardError = sqlite_errors.domain_error(error, self._path)
        elif isinstance(error, UnicodeEncodeError):
            told = errors.BadRequest("Text that is not valid Unicode.")
        else:
            return error
        told.__cause__ = error
        return told

    def _commit(self, group: Sequence[Request]) -> list[_Outcome]:
        connection = self._connection = self._connection or self._connect()
        self._sync_as_needed(connection, any(request.durable for request in group))
        connection.execute("BEGIN IMMEDIATE")
        driver = SqliteDriver(connection)
        if len(group) == 1:
            outcomes = [self._run(group[0], driver)]
            if outcomes[0].error is not None:
                raise outcomes[0].error
        else:
            outcomes = [self._run_in_savepoint(request, driver) for request in group]
        connection.execute("COMMIT")
        return outcomes

    def _run(self, request: Request, driver: SqliteDriver) -> _Outcome:
        tx = SqlTransaction(driver, self._statements, self._shape_cache)
        try:
            value = request.work(tx)
            tx.finish(self.hooks)
            tx.flush_events()
        except BaseException as error:
            return _Outcome(request, tx, error=error)
        return _Outcome(request, tx, value)

    def _run_in_savepoint(self, request: Request, driver: SqliteDriver) -> _Outcome:
        connection = driver.connection
        connection.execute("SAVEPOINT one")
        outcome = self._run(request, driver)
        if outcome.error is not None:
            if not connection.in_transaction:
                # SQLite gave up the whole group, not only the statement that failed.
                raise outcome.error
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return outcome

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self._path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -8000")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        self._full_sync = True
        return connection

    def _sync_as_needed(self, connection: sqlite3.Connection, full: bool) -> None:
        if full != self._full_sync:
            connection.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
            self._full_sync = full

    def _recover(self) -> None:
        """After an error: end the transaction, or if even that fails, begin again from nothing."""
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _copy_log(self) -> None:
        """While nobody waits for it; otherwise SQLite does it inside some commit."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
